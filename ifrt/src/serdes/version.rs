//! [`SerDesVersion`].

/// The version of the serialized forms, negotiated per connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SerDesVersion(i32);

impl SerDesVersion {
    /// The oldest version.
    pub const MINIMUM: Self = Self(0);
    /// The version that brought the unreduced axes of [`crate::sharding::ShardingParam`].
    pub const UNREDUCED_AXES: Self = Self(1);
    /// The newest version.
    pub const CURRENT: Self = Self(5);

    /// The version with this number, if it is one of ours.
    pub fn new(number: i32) -> Option<Self> {
        let version = Self(number);
        (Self::MINIMUM..=Self::CURRENT)
            .contains(&version)
            .then_some(version)
    }

    /// The number.
    pub const fn number(self) -> i32 {
        self.0
    }
}
