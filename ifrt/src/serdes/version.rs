//! [`SerDesVersion`].

/// The version of the serialized forms, negotiated per connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SerDesVersion(i32);

impl SerDesVersion {
    /// The oldest version.
    pub const MINIMUM: Self = Self(0);
    /// The version that brought the unreduced axes of [`crate::sharding::ShardingParam`].
    pub const UNREDUCED_AXES: Self = Self(1);
    /// The version that keeps the dialect Shardy in [`crate::program::HloProgram`]. Older forms
    /// are no longer written.
    pub const MIXED_STABLEHLO: Self = Self(3);
    /// The version that brought the slice sizes of bundles in compile options.
    pub const BUNDLE_SLICE_SIZES: Self = Self(4);
    /// The version that brought [`crate::array_spec::AbstractArraySpec`].
    pub const ABSTRACT_ARRAY_SPEC: Self = Self(5);
    /// The version for data that outlives a process, because a program of a month ago reads it.
    pub const WEEK_4_OLD: Self = Self(3);
    /// The newest version.
    pub const CURRENT: Self = Self(5);

    /// The version with this number, if it is one of ours.
    pub fn new(number: i32) -> Option<Self> {
        let version = Self(number);
        (Self::MINIMUM..=Self::CURRENT)
            .contains(&version)
            .then_some(version)
    }

    /// Every version, oldest first.
    pub fn all() -> impl Iterator<Item = Self> {
        (Self::MINIMUM.0..=Self::CURRENT.0).map(Self)
    }

    /// The number.
    pub const fn number(self) -> i32 {
        self.0
    }
}
