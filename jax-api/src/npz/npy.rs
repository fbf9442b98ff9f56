//! One array: a header that is a Python dictionary in text form, and the elements.

use bytes::Bytes;
use ifrt::{DType, HostValue, Shape};
use jaxlib_core::HostArray;

const MAGIC: &[u8] = b"\x93NUMPY";
/// The elements begin at a multiple of this.
const ALIGNMENT: usize = 64;

/// What is wrong with an array.
type Result<T> = std::result::Result<T, String>;

/// What the header says.
#[derive(Debug, Default)]
struct Header<'a> {
    descr: Option<&'a str>,
    is_fortran: bool,
    shape: Option<Vec<i64>>,
}

/// Reads an array.
pub(super) fn read(bytes: &Bytes) -> Result<HostArray> {
    let (text, start) = split(bytes)?;
    let header = Parser(text).header()?;
    let descr = header.descr.ok_or("its header has no 'descr'")?;
    let dims = header.shape.ok_or("its header has no 'shape'")?;
    let (order, dtype) = element_type(descr)?;
    let shape = Shape::new(dims).map_err(|status| status.message().to_owned())?;
    let item = dtype.host_byte_size().unwrap_or(1);
    let expected = usize::try_from(shape.num_elements())
        .ok()
        .and_then(|elements| elements.checked_mul(item))
        .ok_or("its shape exceeds the memory of this machine")?;
    let found = bytes.len() - start;
    if found != expected {
        return Err(format!(
            "an array of shape {shape} and type '{descr}' has {expected} bytes, but {found} follow \
             its header"
        ));
    }
    let mut data = bytes.slice(start..);
    if order == Order::Foreign {
        data = swapped(&data, part_bytes(dtype)).into();
    }
    if header.is_fortran && shape.rank() > 1 {
        data = row_major(&data, shape.dims(), item).into();
    }
    HostArray::new(dtype, shape, data).map_err(|status| status.message().to_owned())
}

/// The header, and where the elements begin.
fn split(bytes: &[u8]) -> Result<(&str, usize)> {
    let rest = bytes.strip_prefix(MAGIC).ok_or("it is no .npy array")?;
    let (version, rest) = rest.split_first().ok_or("it is cut off")?;
    let (_, rest) = rest.split_first().ok_or("it is cut off")?;
    let (len, header_start) = match version {
        1 => {
            let (len, _) = rest.split_first_chunk().ok_or("it is cut off")?;
            (usize::from(u16::from_le_bytes(*len)), MAGIC.len() + 4)
        }
        2 | 3 => {
            let (len, _) = rest.split_first_chunk().ok_or("it is cut off")?;
            let len = usize::try_from(u32::from_le_bytes(*len)).unwrap_or(usize::MAX);
            (len, MAGIC.len() + 6)
        }
        other => return Err(format!("version {other} of the format is not known")),
    };
    let start = header_start.checked_add(len).ok_or("it is cut off")?;
    let text = bytes.get(header_start..start).ok_or("it is cut off")?;
    let text = std::str::from_utf8(text).map_err(|_| "its header is no text")?;
    Ok((text, start))
}

/// The rest of a header.
struct Parser<'a>(&'a str);

impl<'a> Parser<'a> {
    /// Takes this off the front, after space.
    fn eat(&mut self, what: &str) -> bool {
        self.0 = self.0.trim_start();
        let rest = self.0.strip_prefix(what);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn expect(&mut self, what: &str) -> Result<()> {
        if self.eat(what) {
            return Ok(());
        }
        let found: String = self.0.chars().take(10).collect();
        Err(format!("its header has '{found}' where '{what}' belongs"))
    }

    fn string(&mut self) -> Result<&'a str> {
        let quote = if self.eat("\"") {
            '"'
        } else {
            self.expect("'")?;
            '\''
        };
        let (string, rest) = self.0.split_once(quote).ok_or("its header is cut off")?;
        self.0 = rest;
        Ok(string)
    }

    fn boolean(&mut self) -> Result<bool> {
        if self.eat("True") {
            return Ok(true);
        }
        self.expect("False").map(|()| false)
    }

    fn tuple(&mut self) -> Result<Vec<i64>> {
        self.expect("(")?;
        let mut numbers = Vec::new();
        while !self.eat(")") {
            self.0 = self.0.trim_start();
            let len = self.0.bytes().take_while(u8::is_ascii_digit).count();
            let (digits, rest) = self.0.split_at(len);
            let number = digits.parse().map_err(|_| {
                let found: String = self.0.chars().take(20).collect();
                format!("its shape has '{found}' where a size belongs")
            })?;
            numbers.push(number);
            // Python 2 wrote sizes as long numbers.
            self.0 = rest.strip_prefix('L').unwrap_or(rest);
            if !self.eat(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(numbers)
    }

    fn header(mut self) -> Result<Header<'a>> {
        let mut header = Header::default();
        self.expect("{")?;
        while !self.eat("}") {
            let key = self.string()?;
            self.expect(":")?;
            match key {
                "descr" if self.0.trim_start().starts_with('[') => {
                    return Err(
                        "its elements are records of several fields; save each field \
                                as an array of its own"
                            .to_owned(),
                    );
                }
                "descr" => header.descr = Some(self.string()?),
                "fortran_order" => header.is_fortran = self.boolean()?,
                "shape" => header.shape = Some(self.tuple()?),
                other => return Err(format!("its header has the unknown key '{other}'")),
            }
            if !self.eat(",") {
                self.expect("}")?;
                break;
            }
        }
        Ok(header)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Own,
    Foreign,
}

/// Types that NumPy names. Only the size is known of any other.
const NAMES: [(DType, &str); 14] = [
    (DType::Pred, "b1"),
    (DType::S8, "i1"),
    (DType::S16, "i2"),
    (DType::S32, "i4"),
    (DType::S64, "i8"),
    (DType::U8, "u1"),
    (DType::U16, "u2"),
    (DType::U32, "u4"),
    (DType::U64, "u8"),
    (DType::F16, "f2"),
    (DType::F32, "f4"),
    (DType::F64, "f8"),
    (DType::C64, "c8"),
    (DType::C128, "c16"),
];

pub(super) fn is_numpy_type(dtype: DType) -> bool {
    NAMES.iter().any(|(known, _)| *known == dtype)
}

/// Bits of unknown meaning.
const BITS: [(DType, &str); 4] = [
    (DType::U8, "V1"),
    (DType::U16, "V2"),
    (DType::U32, "V4"),
    (DType::U64, "V8"),
];

fn element_type(descr: &str) -> Result<(Order, DType)> {
    let foreign = if cfg!(target_endian = "little") {
        '>'
    } else {
        '<'
    };
    let mut rest = descr.chars();
    let (order, name) = match rest.next() {
        Some(order) if order == foreign => (Order::Foreign, rest.as_str()),
        Some('<' | '>' | '|' | '=') => (Order::Own, rest.as_str()),
        _ => (Order::Own, descr),
    };
    let known = NAMES.iter().chain(&BITS).find(|(_, known)| *known == name);
    if let Some((dtype, _)) = known {
        return Ok((order, *dtype));
    }
    Err(match name.chars().next() {
        Some('O') => "its elements are Python objects, which only Python can read".to_owned(),
        Some('U' | 'S' | 'T') => format!("its elements are texts ('{descr}'), not numbers"),
        _ => format!("elements of type '{descr}' have no counterpart in JAX"),
    })
}

/// The bytes that stand in one order: half of a complex number.
fn part_bytes(dtype: DType) -> usize {
    let item = dtype.host_byte_size().unwrap_or(1);
    if matches!(dtype, DType::C64 | DType::C128) {
        item / 2
    } else {
        item
    }
}

fn swapped(data: &[u8], part: usize) -> Vec<u8> {
    data.chunks(part)
        .flat_map(|chunk| chunk.iter().rev().copied())
        .collect()
}

/// The elements in the order of JAX; they come with the first dimension fastest.
fn row_major(data: &[u8], dims: &[i64], item: usize) -> Vec<u8> {
    let dims: Vec<usize> = dims
        .iter()
        .map(|dim| usize::try_from(*dim).unwrap_or(0))
        .collect();
    let mut strides = Vec::with_capacity(dims.len());
    let mut stride = item;
    for dim in &dims {
        strides.push(stride);
        stride *= dim;
    }
    let mut out = Vec::with_capacity(data.len());
    let mut index = vec![0_usize; dims.len()];
    while out.len() < data.len() {
        let start: usize = index
            .iter()
            .zip(&strides)
            .map(|(n, stride)| n * stride)
            .sum();
        out.extend_from_slice(&data[start..start + item]);
        for axis in (0..dims.len()).rev() {
            index[axis] += 1;
            if index[axis] < dims[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    out
}

/// Header and elements.
pub(super) fn write(array: &HostArray) -> Result<(Vec<u8>, Bytes)> {
    let HostValue::Bytes(data) = array.value() else {
        return Err("its elements are texts".to_owned());
    };
    let order = if cfg!(target_endian = "little") {
        '<'
    } else {
        '>'
    };
    let dtype = array.dtype();
    let item = dtype.host_byte_size().unwrap_or(1);
    let name = NAMES.iter().find(|(known, _)| *known == dtype);
    let descr = match name {
        Some((_, name)) if item == 1 => format!("|{name}"),
        Some((_, name)) => format!("{order}{name}"),
        // As NumPy writes types that were added to it.
        None => format!("{order}V{item}"),
    };
    let dims = array.shape().dims();
    let shape = match dims {
        [one] => format!("({one},)"),
        dims => {
            let dims: Vec<String> = dims.iter().map(ToString::to_string).collect();
            format!("({})", dims.join(", "))
        }
    };
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    let prefix = MAGIC.len() + 4;
    let total = (prefix + text.len() + 1).next_multiple_of(ALIGNMENT);
    text.extend(std::iter::repeat_n(' ', total - prefix - text.len() - 1));
    text.push('\n');
    let len = u16::try_from(text.len()).map_err(|_| "it has too many dimensions")?;
    let mut header = MAGIC.to_vec();
    header.extend([1, 0]);
    header.extend(len.to_le_bytes());
    header.extend(text.into_bytes());
    Ok((header, data.clone()))
}
