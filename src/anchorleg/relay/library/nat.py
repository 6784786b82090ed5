"""Natural numbers in unary form.  The functions on lists need the prelude in the module."""

TEXT = """
type nat {
  zero,
  succ(nat),
}

def @nat_double(%n: nat) -> nat {
  match (%n) {
    zero => zero,
    succ(%less) => succ(succ(@nat_double(%less))),
  }
}

def @nat_add(%n: nat, %m: nat) -> nat {
  match (%n) {
    zero => %m,
    succ(%less) => succ(@nat_add(%less, %m)),
  }
}

def @nat_nth[A](%list: List[A], %index: nat) -> A {
  match (%index) {
    zero => @hd(%list),
    succ(%less) => @nat_nth(@tl(%list), %less),
  }
}

def @nat_update[A](%list: List[A], %index: nat, %value: A) -> List[A] {
  match (%index) {
    zero => Cons(%value, @tl(%list)),
    succ(%less) => Cons(@hd(%list), @nat_update(@tl(%list), %less, %value)),
  }
}

// f applied as often as the number says
def @nat_iterate[A](%f: fn (A) -> A, %n: nat) -> fn (A) -> A {
  match (%n) {
    zero => fn (%value: A) -> A { %value },
    succ(%less) => fn (%value: A) -> A { %f(@nat_iterate(%f, %less)(%value)) },
  }
}
"""
