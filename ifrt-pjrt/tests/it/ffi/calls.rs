//! The calls of the fixture: modules of them, arguments for them, and their results as numbers.

#![allow(
    clippy::cast_possible_truncation,
    reason = "numbers are made for arrays of smaller types"
)]

use faer::{Mat, c64};
use ifrt::{ArrayRef, DType};
use ifrt_pjrt::PjrtClient;

use crate::support::*;

const CALLS: &str = include_str!("../data/custom_calls.txt");

/// A type of the module, and of an array.
#[derive(Clone, Debug)]
pub(super) struct Tensor {
    text: String,
    dims: Vec<usize>,
    dtype: DType,
}

impl Tensor {
    fn parse(text: &str) -> Self {
        let inner = text
            .strip_prefix("tensor<")
            .and_then(|text| text.strip_suffix('>'))
            .unwrap();
        let parts: Vec<&str> = inner.split('x').collect();
        // The name of a complex type has an x, too.
        let dims = parts.iter().map_while(|part| part.parse().ok()).collect();
        let dtype = match inner.rsplit_once("complex") {
            Some((_, "<f32>")) => DType::C64,
            Some((_, "<f64>")) => DType::C128,
            _ => match parts[parts.len() - 1] {
                "f32" => DType::F32,
                "f64" => DType::F64,
                "i32" => DType::S32,
                other => panic!("{other}"),
            },
        };
        Self {
            text: text.to_owned(),
            dims,
            dtype,
        }
    }

    fn len(&self) -> usize {
        self.dims.iter().product()
    }

    fn bytes_of(&self, values: &[c64]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for value in values {
            match self.dtype {
                DType::S32 => bytes.extend((value.re as i32).to_le_bytes()),
                DType::F32 => bytes.extend((value.re as f32).to_le_bytes()),
                DType::F64 => bytes.extend(value.re.to_le_bytes()),
                DType::C64 => {
                    bytes.extend((value.re as f32).to_le_bytes());
                    bytes.extend((value.im as f32).to_le_bytes());
                }
                _ => {
                    bytes.extend(value.re.to_le_bytes());
                    bytes.extend(value.im.to_le_bytes());
                }
            }
        }
        bytes
    }

    fn values_of(&self, bytes: &[u8]) -> Vec<c64> {
        let single = |b: &[u8]| f64::from(f32::from_le_bytes(b.try_into().unwrap()));
        let double = |b: &[u8]| f64::from_le_bytes(b.try_into().unwrap());
        let size = self.dtype.byte_size().unwrap();
        bytes
            .chunks_exact(size)
            .map(|b| match self.dtype {
                DType::S32 => c64::new(f64::from(i32::from_le_bytes(b.try_into().unwrap())), 0.0),
                DType::F32 => c64::new(single(b), 0.0),
                DType::F64 => c64::new(double(b), 0.0),
                DType::C64 => c64::new(single(&b[..4]), single(&b[4..])),
                _ => c64::new(double(&b[..8]), double(&b[8..])),
            })
            .collect()
    }

    /// Arguments that fit every routine: square matrices are Hermitian and positive definite.
    fn numbers(&self, name: &str, index: usize) -> Vec<c64> {
        if self.dtype == DType::S32 {
            let indices: &[f64] = match index {
                1 if name.contains("sparse") => &[0.0, 2.0, 2.0, 5.0],
                2 if name.contains("sparse") => &[1.0, 3.0, 0.0, 2.0, 3.0],
                _ => &[0.0; 6],
            };
            return indices.iter().map(|index| c64::new(*index, 0.0)).collect();
        }
        let is_tau = index == 1 && (name.contains("gqr_") || name.contains("mqr_"));
        // Quadratic, since the waves of a matrix with a linear one are of rank two.
        let wave = |at: usize| ((at * at) as f64 * 0.37 + at as f64 * 0.7 + index as f64).sin();
        let complex = matches!(self.dtype, DType::C64 | DType::C128);
        let mut values: Vec<c64> = (0..self.len())
            .map(|at| c64::new(wave(at), if complex { wave(at + 100) } else { 0.0 }))
            .map(|value| if is_tau { c64::new(0.0, 0.0) } else { value })
            .collect();
        // The main diagonal of a tridiagonal system.
        if index == 1 && self.dims.len() == 2 && name.contains("solve") | name.contains("gtsv") {
            values
                .iter_mut()
                .for_each(|value| *value += c64::new(5.0, 0.0));
        }
        if let [.., rows, cols] = self.dims[..]
            && rows == cols
        {
            for matrix in values.chunks_exact_mut(rows * cols) {
                for row in 0..rows {
                    for col in 0..row {
                        matrix[row * cols + col] = matrix[col * cols + row].conj();
                    }
                    matrix[row * cols + row] = c64::new(4.0 + row as f64, 0.0);
                }
            }
        }
        values
    }
}

/// A custom call as JAX writes it.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// The target.
    pub(super) name: String,
    text: String,
    operands: Vec<String>,
    args: Vec<Tensor>,
    results: Vec<Tensor>,
}

fn types(text: &str) -> Vec<Tensor> {
    let text = text.trim().trim_start_matches('(').trim_end_matches(')');
    text.split(", ").map(Tensor::parse).collect()
}

/// Every call of the fixture.
pub(super) fn all_calls() -> Vec<Call> {
    CALLS
        .lines()
        .map(|line| {
            let (before, operands) = line.split_once('(').unwrap();
            let (_, name) = before.split_once('@').unwrap();
            let (operands, _) = operands.split_once(')').unwrap();
            let (_, signature) = line.rsplit_once(" : (").unwrap();
            let (args, results) = signature.split_once(" -> ").unwrap();
            Call {
                name: name.to_owned(),
                text: line.to_owned(),
                operands: operands.split(", ").map(str::to_owned).collect(),
                args: types(args),
                results: types(results),
            }
        })
        .collect()
}

/// The call of a target.
pub(super) fn find(name: &str) -> Call {
    all_calls()
        .into_iter()
        .find(|call| call.name == name)
        .unwrap()
}

/// Arguments and results of a call.
#[derive(Debug)]
pub(super) struct Outcome {
    call: Call,
    args: Vec<Vec<c64>>,
    /// The results, flat.
    pub(super) results: Vec<Vec<c64>>,
}

impl Call {
    /// A program that does nothing but the call.
    pub(super) fn module(&self) -> String {
        let joined = |list: Vec<String>| list.join(", ");
        let types = |list: &[Tensor]| joined(list.iter().map(|t| t.text.clone()).collect());
        let args = self.operands.iter().zip(&self.args);
        let args = joined(
            args.map(|(name, tensor)| format!("{name}: {}", tensor.text))
                .collect(),
        );
        let count = self.results.len();
        let (results, values) = match count {
            1 => ("%0".to_owned(), "%0".to_owned()),
            _ => (
                format!("%0:{count}"),
                joined((0..count).map(|at| format!("%0#{at}")).collect()),
            ),
        };
        let result_types = types(&self.results);
        format!(
            "module @call {{
              func.func @main({args}) -> ({result_types}) {{
                {results} = {}
                return {values} : {result_types}
              }}
            }}",
            self.text
        )
    }

    /// Runs the call with arguments that fit it.
    pub(super) fn run(&self, client: &PjrtClient) -> Outcome {
        let numbers = self
            .args
            .iter()
            .enumerate()
            .map(|(at, tensor)| tensor.numbers(&self.name, at));
        self.run_on(client, numbers.collect())
    }

    /// Runs the call with one element of each matrix exchanged.
    pub(super) fn run_with(&self, client: &PjrtClient, value: impl Fn(usize, usize) -> f64) {
        let mut numbers: Vec<Vec<c64>> = (self.args.iter().enumerate())
            .map(|(at, tensor)| tensor.numbers(&self.name, at))
            .collect();
        for (index, (numbers, tensor)) in numbers.iter_mut().zip(&self.args).enumerate() {
            if tensor.dtype != DType::S32 && tensor.len() > 0 {
                let middle = tensor.len() / 2;
                numbers[middle] = c64::new(value(index, middle), 0.0);
            }
        }
        self.run_on(client, numbers);
    }

    fn run_on(&self, client: &PjrtClient, numbers: Vec<Vec<c64>>) -> Outcome {
        let executable = compile(client, &self.module());
        let args: Vec<ArrayRef> = (self.args.iter().zip(&numbers))
            .map(|(tensor, numbers)| {
                let dims: Vec<i64> = tensor
                    .dims
                    .iter()
                    .map(|dim| i64::try_from(*dim).unwrap())
                    .collect();
                put_bytes(client, tensor.dtype, &dims, &tensor.bytes_of(numbers)).unwrap()
            })
            .collect();
        let results = run(&executable, &args.iter().collect::<Vec<_>>()).unwrap();
        assert_eq!(results.len(), self.results.len(), "{}", self.name);
        let results = (results.iter().zip(&self.results))
            .map(|(result, tensor)| match fetch_bytes(result) {
                Ok(bytes) => tensor.values_of(&bytes),
                Err(status) => panic!("{}: {status}", self.name),
            })
            .collect();
        Outcome {
            call: self.clone(),
            args: numbers,
            results,
        }
    }
}

fn part(tensor: &Tensor, values: &[c64], batch: usize, own: usize) -> Vec<c64> {
    let outer = tensor.dims.len().saturating_sub(own);
    let size: usize = tensor.dims[outer..].iter().product();
    values[batch * size..][..size].to_vec()
}

impl Outcome {
    /// How many matrices each argument holds.
    pub(super) fn batches(&self) -> usize {
        match self.call.name.contains("sparse") {
            true => 1,
            false => self.call.args[0].dims[0],
        }
    }

    fn matrix(tensor: &Tensor, values: &[c64], batch: usize) -> Mat<c64> {
        let [.., rows, cols] = tensor.dims[..] else {
            panic!("{tensor:?} is no matrix")
        };
        let values = part(tensor, values, batch, 2);
        Mat::from_fn(rows, cols, |row, col| values[row * cols + col])
    }

    /// A matrix of an argument.
    pub(super) fn arg(&self, index: usize, batch: usize) -> Mat<c64> {
        Self::matrix(&self.call.args[index], &self.args[index], batch)
    }

    /// A matrix of a result.
    pub(super) fn result(&self, index: usize, batch: usize) -> Mat<c64> {
        Self::matrix(&self.call.results[index], &self.results[index], batch)
    }

    /// A vector of an argument.
    pub(super) fn arg_list(&self, index: usize, batch: usize) -> Vec<c64> {
        part(&self.call.args[index], &self.args[index], batch, 1)
    }

    /// A vector of a result, or the number of a batch.
    pub(super) fn result_list(&self, index: usize, batch: usize) -> Vec<c64> {
        let tensor = &self.call.results[index];
        part(
            tensor,
            &self.results[index],
            batch,
            tensor.dims.len().saturating_sub(1),
        )
    }
}
