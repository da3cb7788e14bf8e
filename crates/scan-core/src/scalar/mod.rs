//! The elementwise table and the mathematics of its rows.

/// An elementwise function: a row of the table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum ElemOp {
    Add,
    Sub,
    Mul,
    Div,
    Neg,
    Minimum,
    Maximum,
    Exp,
    Log,
    Eq,
    Lt,
    Ge,
    Where,
}
impl ElemOp {
    /// Name in the text form.
    pub fn name(self) -> &'static str {
        todo!()
    }
    /// Row of a name.
    pub fn parse(_name: &str) -> Option<ElemOp> {
        None
    }
}
