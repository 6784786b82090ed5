"""Gradients that are known to be zero or one stay symbolic until a tensor is needed."""

TEXT = """
type GradCell[T] {
  Raw(T),
  One(fn () -> T),
  Zero(fn () -> T),
}

def @FromGradCell[T](%cell: GradCell[T]) -> T {
  match (%cell) {
    Raw(%value) => %value,
    One(%make) => %make(),
    Zero(%make) => %make(),
  }
}

def @MultiplyGradCell[T](%multiply: fn (T, T) -> T, %left: GradCell[T], %right: GradCell[T]) -> GradCell[T] {
  match ((%left, %right)) {
    (Zero(_), _) => %left,
    (_, Zero(_)) => %right,
    (One(_), _) => %right,
    (_, One(_)) => %left,
    _ => Raw(%multiply(@FromGradCell(%left), @FromGradCell(%right))),
  }
}

def @AddGradCell[T](%add: fn (T, T) -> T, %left: GradCell[T], %right: GradCell[T]) -> GradCell[T] {
  match ((%left, %right)) {
    (Zero(_), _) => %right,
    (_, Zero(_)) => %left,
    _ => Raw(%add(@FromGradCell(%left), @FromGradCell(%right))),
  }
}
"""
