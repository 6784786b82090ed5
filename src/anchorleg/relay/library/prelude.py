"""Lists, options and trees, and the usual functions on them."""

TEXT = """
type List[A] {
  Cons(A, List[A]),
  Nil,
}

type Option[A] {
  Some(A),
  None,
}

// A node with any number of subtrees.
type Tree[A] {
  Rose(A, List[Tree[A]]),
}

// ---- functions of functions

def @id[A](%value: A) -> A { %value }

def @compose[A, B, C](%outer: fn (B) -> C, %inner: fn (A) -> B) -> fn (A) -> C {
  fn (%value: A) -> C { %outer(%inner(%value)) }
}

def @flip[A, B, C](%f: fn (A, B) -> C) -> fn (B, A) -> C {
  fn (%second: B, %first: A) -> C { %f(%first, %second) }
}

// f applied n times
def @iterate[A](%f: fn (A) -> A, %n: int32) -> fn (A) -> A {
  if (%n == 0) { @id } else { @compose(%f, @iterate(%f, %n - 1)) }
}

// ---- lists

def @hd[A](%list: List[A]) -> A {
  match? (%list) { Cons(%first, _) => %first }
}

def @tl[A](%list: List[A]) -> List[A] {
  match? (%list) { Cons(_, %others) => %others }
}

def @nth[A](%list: List[A], %index: int32) -> A {
  if (%index == 0) { @hd(%list) } else { @nth(@tl(%list), %index - 1) }
}

def @update[A](%list: List[A], %index: int32, %value: A) -> List[A] {
  if (%index == 0) {
    Cons(%value, @tl(%list))
  } else {
    Cons(@hd(%list), @update(@tl(%list), %index - 1, %value))
  }
}

def @length[A](%list: List[A]) -> int32 {
  match (%list) {
    Nil => 0,
    Cons(_, %others) => 1 + @length(%others),
  }
}

def @map[A, B](%f: fn (A) -> B, %list: List[A]) -> List[B] {
  match (%list) {
    Nil => Nil,
    Cons(%first, %others) => Cons(%f(%first), @map(%f, %others)),
  }
}

// f(... f(f(start, x0), x1) ..., xn)
def @foldl[A, B](%f: fn (A, B) -> A, %start: A, %list: List[B]) -> A {
  match (%list) {
    Nil => %start,
    Cons(%first, %others) => @foldl(%f, %f(%start, %first), %others),
  }
}

// f(x0, f(x1, ... f(xn, start)))
def @foldr[A, B](%f: fn (A, B) -> B, %start: B, %list: List[A]) -> B {
  match (%list) {
    Nil => %start,
    Cons(%first, %others) => %f(%first, @foldr(%f, %start, %others)),
  }
}

// a right fold that starts from the last element; the list must not be empty
def @foldr1[A](%f: fn (A, A) -> A, %list: List[A]) -> A {
  match? (%list) {
    Cons(%last, Nil) => %last,
    Cons(%first, %others) => %f(%first, @foldr1(%f, %others)),
  }
}

def @sum(%list: List[int32]) -> int32 {
  @foldl(fn (%total: int32, %each: int32) -> int32 { %total + %each }, 0, %list)
}

def @concat[A](%front: List[A], %back: List[A]) -> List[A] {
  @foldr(Cons, %back, %front)
}

def @filter[A](%keep: fn (A) -> bool, %list: List[A]) -> List[A] {
  match (%list) {
    Nil => Nil,
    Cons(%first, %others) => {
      if (%keep(%first)) { Cons(%first, @filter(%keep, %others)) } else { @filter(%keep, %others) }
    },
  }
}

// pairs, as many as the shorter list has elements
def @zip[A, B](%lefts: List[A], %rights: List[B]) -> List[(A, B)] {
  match (%lefts) {
    Nil => Nil,
    Cons(%left, %more_lefts) => {
      match (%rights) {
        Nil => Nil,
        Cons(%right, %more_rights) => Cons((%left, %right), @zip(%more_lefts, %more_rights)),
      }
    },
  }
}

def @rev[A](%list: List[A]) -> List[A] {
  @foldl(@flip(Cons), Nil, %list)
}

// a map that carries a value along, from the right
def @map_accumr[A, B, C](%f: fn (A, B) -> (A, C), %start: A, %list: List[B]) -> (A, List[C]) {
  let %step = fn (%each: B, %so_far: (A, List[C])) -> (A, List[C]) {
    let %got = %f(%so_far.0, %each);
    (%got.0, Cons(%got.1, %so_far.1))
  };
  @foldr(%step, (%start, Nil), %list)
}

// the same from the left; the results come in the order of the calls, the last one first
def @map_accuml[A, B, C](%f: fn (A, B) -> (A, C), %start: A, %list: List[B]) -> (A, List[C]) {
  let %step = fn (%done: (A, List[C]), %each: B) -> (A, List[C]) {
    let %got = %f(%done.0, %each);
    (%got.0, Cons(%got.1, %done.1))
  };
  @foldl(%step, (%start, Nil), %list)
}

// the list of what f yields until it gives None, first result first
def @unfoldr[A, B](%f: fn (A) -> Option[(A, B)], %seed: A) -> List[B] {
  match (%f(%seed)) {
    None => Nil,
    Some(%got) => Cons(%got.1, @unfoldr(%f, %got.0)),
  }
}

// the same, first result last
def @unfoldl[A, B](%f: fn (A) -> Option[(A, B)], %seed: A) -> List[B] {
  @rev(@unfoldr(%f, %seed))
}

// ---- trees

def @tmap[A, B](%f: fn (A) -> B, %tree: Tree[A]) -> Tree[B] {
  match (%tree) {
    Rose(%value, %below) => Rose(%f(%value), @map(fn (%each: Tree[A]) -> Tree[B] { @tmap(%f, %each) }, %below)),
  }
}

// the number of nodes
def @size[A](%tree: Tree[A]) -> int32 {
  match (%tree) {
    Rose(_, %below) => 1 + @sum(@map(@size, %below)),
  }
}
"""
