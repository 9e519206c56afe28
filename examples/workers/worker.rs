//! A worker for lists of instructions on bool, int32, float32 and index, on the standard library alone.
//! It takes the form `linear` only: the suite lowers every program to it. Build: rustc -O worker.rs

use std::collections::HashMap;
use std::io::{self, BufRead, Write};

// JSON: numbers stay text, members of objects stay in order.
#[derive(Debug)]
enum Json {
    Word(String),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&mut self) -> u8 {
        while self.at < self.bytes.len() && self.bytes[self.at].is_ascii_whitespace() {
            self.at += 1;
        }
        *self.bytes.get(self.at).unwrap_or(&0)
    }

    fn take(&mut self, wanted: u8) -> bool {
        let found = self.peek() == wanted;
        self.at += found as usize;
        found
    }

    fn string(&mut self) -> String {
        let mut text = Vec::new();
        self.take(b'"');
        while self.at < self.bytes.len() && self.bytes[self.at] != b'"' {
            if self.bytes[self.at] == b'\\' {
                self.at += 1; // the few escapes in a text are not looked at here
            }
            text.push(*self.bytes.get(self.at).unwrap_or(&b' '));
            self.at += 1;
        }
        self.at += 1;
        String::from_utf8_lossy(&text).into_owned()
    }

    fn value(&mut self) -> Json {
        match self.peek() {
            b'"' => Json::Text(self.string()),
            b'[' => {
                let mut items = Vec::new();
                self.at += 1;
                while !self.take(b']') && self.at < self.bytes.len() {
                    items.push(self.value());
                    self.take(b',');
                }
                Json::List(items)
            }
            b'{' => {
                let mut members = Vec::new();
                self.at += 1;
                while !self.take(b'}') && self.at < self.bytes.len() {
                    self.peek();
                    let name = self.string();
                    self.take(b':');
                    members.push((name, self.value()));
                    self.take(b',');
                }
                Json::Object(members)
            }
            _ => {
                let start = self.at;
                while self.at < self.bytes.len() && !b",]} \n".contains(&self.bytes[self.at]) {
                    self.at += 1;
                }
                Json::Word(String::from_utf8_lossy(&self.bytes[start..self.at]).into_owned())
            }
        }
    }
}

impl Json {
    fn get(&self, name: &str) -> &Json {
        const NOTHING: &Json = &Json::List(Vec::new());
        match self {
            Json::Object(members) => {
                members.iter().find(|(n, _)| n == name).map_or(NOTHING, |(_, value)| value)
            }
            _ => NOTHING,
        }
    }

    fn items(&self) -> &[Json] {
        if let Json::List(items) = self { items } else { &[] }
    }

    fn text(&self) -> &str {
        match self {
            Json::Text(text) | Json::Word(text) => text,
            _ => "",
        }
    }

    fn number(&self) -> i64 {
        self.text().parse().unwrap_or(0)
    }
}

/// A node of a program: every one says its own dtype and shape.
struct Node {
    op: String,
    src: Vec<usize>,
    dtype: String,
    size: usize,
    slot: i64,
    bits: u64,
}

impl Node {
    fn read(node: &Json) -> Node {
        let (arg, dtype) = (node.get("arg"), node.get("dtype").text().to_string());
        Node {
            op: node.get("op").text().to_string(),
            src: node.get("src").items().iter().map(|s| s.number() as usize).collect(),
            size: node.get("shape").items().iter().map(|n| n.number() as usize).product(),
            slot: arg.get("slot").number(),
            bits: constant(arg.get("value").text(), &dtype),
            dtype,
        }
    }
}

/// The bits of a constant; floats are written in hex, as inf, or as nan: with their bits.
fn constant(text: &str, dtype: &str) -> u64 {
    if dtype != "float32" {
        return if text == "true" { 1 } else { text.parse::<i64>().unwrap_or(0) as u64 };
    }
    if let Some(bits) = text.strip_prefix("nan:0x") {
        return u64::from_str_radix(bits, 16).unwrap_or(0);
    }
    let (sign, rest) = text.strip_prefix('-').map_or((1.0, text), |rest| (-1.0, rest));
    let Some((digits, power)) = rest.strip_prefix("0x").and_then(|hex| hex.split_once('p')) else {
        return (sign as f32 * rest.parse::<f32>().unwrap_or(0.0)).to_bits() as u64;
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let mantissa = u64::from_str_radix(&format!("{whole}{part}"), 16).unwrap_or(0) as f64;
    let exponent = power.parse::<i32>().unwrap_or(0) - 4 * part.len() as i32;
    ((sign * mantissa * 2f64.powi(exponent)) as f32).to_bits() as u64
}

fn number(bits: u64, dtype: &str) -> f64 {
    if dtype == "float32" { f32::from_bits(bits as u32) as f64 } else { signed(bits, dtype) as f64 }
}

fn signed(bits: u64, dtype: &str) -> i64 {
    if dtype == "int32" { bits as u32 as i32 as i64 } else { bits as i64 }
}

fn cast(bits: u64, from: &str, to: &str) -> u64 {
    match (from, to) {
        (_, "bool") => (number(bits, from) != 0.0) as u64,
        ("float32", "float32") => bits,
        ("float32", "int32") => f32::from_bits(bits as u32) as i32 as u32 as u64,
        (_, "float32") => (signed(bits, from) as f32).to_bits() as u64,
        (_, "int32") => bits as u32 as u64,
        _ => signed(bits, from) as u64,
    }
}

fn floating(op: &str, a: f32, b: f32) -> u64 {
    let value = match op {
        "CMPLT" => return (a < b) as u64,
        "CMPNE" => return (a != b) as u64,
        "ADD" => a + b,
        "SUB" => a - b,
        "MUL" => a * b,
        "DIV" => a / b,
        "NEG" => -a,
        "RECIP" => 1.0 / a,
        "SQRT" => a.sqrt(),
        "TRUNC" => a.trunc(),
        "MAX" => if a > b || a.is_nan() { a } else { b },
        _ => f32::NAN,
    };
    value.to_bits() as u64
}

fn integer(op: &str, a: i64, b: i64) -> i64 {
    // What a division by zero gives is open, but it must not end the process.
    let divisor = if b == 0 { 1 } else { b };
    let (quotient, rest) = (a.wrapping_div(divisor), a.wrapping_rem(divisor));
    let is_below = (rest != 0 && (rest < 0) != (divisor < 0)) as i64;
    match op {
        "CMPLT" => (a < b) as i64,
        "CMPNE" => (a != b) as i64,
        "ADD" => a.wrapping_add(b),
        "SUB" => a.wrapping_sub(b),
        "MUL" => a.wrapping_mul(b),
        "NEG" => a.wrapping_neg(),
        "MAX" => a.max(b),
        "AND" => a & b,
        "OR" => a | b,
        "XOR" => a ^ b,
        "IDIV" => quotient - is_below,
        "MOD" => rest + is_below * divisor,
        "SHL" => a << (b & 31),
        "SHR" => a >> (b & 31),
        _ => a,
    }
}

fn computed(op: &str, dtype: &str, a: u64, b: u64) -> u64 {
    match dtype {
        "float32" => floating(op, f32::from_bits(a as u32), f32::from_bits(b as u32)),
        "int32" => integer(op, signed(a, dtype), signed(b, dtype)) as u32 as u64,
        "bool" => match op {
            "ADD" | "MAX" => a | b,
            "MUL" => a & b,
            _ => integer(op, a as i64, b as i64) as u64 & 1,
        },
        _ => integer(op, a as i64, b as i64) as u64,
    }
}

type Memory = HashMap<i64, Vec<u64>>;

/// A work item of a kernel: the value of each instruction, for an INDEX its offset.
struct Item<'a> {
    nodes: &'a [Node],
    arguments: &'a [i64],
    values: Vec<u64>,
    registers: HashMap<usize, Vec<u64>>,
}

impl Item<'_> {
    /// The memory that an INDEX points into.
    fn memory<'m>(&'m mut self, index: usize, global: &'m mut Memory) -> &'m mut Vec<u64> {
        let mut at = self.nodes[index].src[0];
        while self.nodes[at].op == "AFTER" {
            at = self.nodes[at].src[0];
        }
        let node = &self.nodes[at];
        if node.op == "PARAM" {
            return global.get_mut(&self.arguments[node.slot as usize]).expect("an argument");
        }
        self.registers.entry(at).or_insert_with(|| vec![0; node.size])
    }

    fn run(&mut self, instructions: &[usize], global: &mut Memory) {
        let place: HashMap<usize, usize> =
            instructions.iter().enumerate().map(|(at, &n)| (n, at)).collect();
        let nodes = self.nodes;
        let mut pc = 0;
        while pc < instructions.len() {
            let n = instructions[pc];
            let (u, src) = (&nodes[n], &nodes[n].src);
            let v: [u64; 3] = [0, 1, 2].map(|k| src.get(k).map_or(1, |&s| self.values[s]));
            pc += 1;
            match u.op.as_str() {
                "PARAM" | "BUFFER" | "AFTER" | "STACK" | "SPECIAL" => {}
                "CONST" => self.values[n] = u.bits,
                "INDEX" => self.values[n] = v[1],
                "RANGE" => {
                    self.values[n] = 0;
                    if v[0] == 0 {
                        let closes = |&e: &usize| nodes[e].op == "END" && nodes[e].src[1] == n;
                        pc = 1 + instructions.iter().position(closes).expect("an END");
                    }
                }
                "END" => {
                    self.values[src[1]] += 1;
                    if self.values[src[1]] < self.values[nodes[src[1]].src[0]] {
                        pc = place[&src[1]] + 1;
                    }
                }
                "LOAD" if v[2] == 0 => self.values[n] = v[1],
                "LOAD" => {
                    let offset = v[0] as usize;
                    self.values[n] = self.memory(src[0], global)[offset];
                }
                "STORE" => {
                    let (offset, stored, gate) = (v[0] as usize, v[1], v[2]);
                    if gate != 0 {
                        self.memory(src[0], global)[offset] = stored;
                    }
                }
                "WHERE" => self.values[n] = if v[0] != 0 { v[1] } else { v[2] },
                "CAST" => self.values[n] = cast(v[0], &nodes[src[0]].dtype, &u.dtype),
                op => self.values[n] = computed(op, &nodes[src[0]].dtype, v[0], v[1]),
            }
        }
    }
}

/// Run one CALL: every work item of its LINEAR.
fn launch(nodes: &[Node], call: &Node, global: &mut Memory) {
    let root = |mut at: usize| {
        while nodes[at].op == "AFTER" {
            at = nodes[at].src[0];
        }
        nodes[at].slot
    };
    let arguments: Vec<i64> = call.src[1..].iter().map(|&a| root(a)).collect();
    let instructions = &nodes[call.src[0]].src;
    let special = |&&n: &&usize| nodes[n].op == "SPECIAL";
    let axes: Vec<usize> = instructions.iter().filter(special).copied().collect();
    let sizes: Vec<u64> = axes.iter().map(|&a| nodes[nodes[a].src[0]].bits).collect();
    for number in 0..sizes.iter().product() {
        let mut values = vec![0; nodes.len()];
        let mut rest = number;
        for (&axis, &size) in axes.iter().zip(&sizes) {
            values[axis] = rest % size;
            rest /= size;
        }
        let registers = HashMap::new();
        Item { nodes, arguments: &arguments, values, registers }.run(instructions, global);
    }
}

fn width(dtype: &str) -> usize {
    match dtype {
        "bool" => 1,
        "index" => 8,
        _ => 4,
    }
}

fn from_hex(given: &Json) -> Vec<u64> {
    let data = given.get("data").text().as_bytes();
    let element = |digits: &[u8]| {
        digits.chunks(2).rev().fold(0, |bits, two| {
            let byte = std::str::from_utf8(two).ok().and_then(|t| u64::from_str_radix(t, 16).ok());
            bits << 8 | byte.unwrap_or(0)
        })
    };
    data.chunks(2 * width(given.get("dtype").text())).map(element).collect()
}

fn to_hex(elements: &[u64], dtype: &str) -> String {
    let bytes = elements.iter().flat_map(|e| IntoIterator::into_iter(e.to_le_bytes()).take(width(dtype)));
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

fn run(nodes: &[Node], outputs: &[Json], inputs: &Json) -> String {
    let mut global = Memory::new();
    for u in nodes.iter().filter(|u| u.op == "BUFFER") {
        let given = inputs.get(&u.slot.to_string());
        let start = if given.get("data").text().is_empty() { vec![0; u.size] } else { from_hex(given) };
        global.entry(u.slot).or_insert(start);
    }
    for call in nodes.iter().filter(|u| u.op == "CALL") {
        launch(nodes, call, &mut global);
    }
    let array = |o: &Json| {
        let (node, dtype) = (&nodes[o.get("node").number() as usize], o.get("dtype").text());
        let shape: Vec<&str> = o.get("shape").items().iter().map(Json::text).collect();
        let data = to_hex(&global[&node.slot], dtype);
        format!(r#"{{"dtype":"{dtype}","shape":[{}],"data":"{data}"}}"#, shape.join(","))
    };
    format!("[{}]", outputs.iter().map(array).collect::<Vec<_>>().join(","))
}

const OPS: &[&str] = &[
    "PARAM", "CONST", "STACK", "BUFFER", "AFTER", "CALL", "LINEAR", "SINK", "SPECIAL", "RANGE", "END",
    "INDEX", "LOAD", "STORE", "ADD", "SUB", "MUL", "DIV", "NEG", "RECIP", "SQRT", "TRUNC", "MAX",
    "CMPLT", "CMPNE", "AND", "OR", "XOR", "IDIV", "MOD", "SHL", "SHR", "WHERE", "CAST",
];

fn answer(request: &Json) -> String {
    match request.get("do").text() {
        "hello" => format!(
            r#""protocol":1,"name":"rust-example","version":"1","forms":["linear"],"ops":{OPS:?},
"dtypes":["bool","int32","float32","index"],"profile":"""#
        )
        .replace('\n', ""),
        "run" => {
            let nodes = request.get("program").get("nodes").items();
            let nodes: Vec<Node> = nodes.iter().map(Node::read).collect();
            let outputs = request.get("outputs").items();
            let sets = request.get("inputs").items();
            let results: Vec<String> = sets.iter().map(|i| run(&nodes, outputs, i)).collect();
            format!(r#""outputs":[{}]"#, results.join(","))
        }
        _ => r#""error":{"class":"unsupported","message":"no such request"}"#.to_string(),
    }
}

fn main() -> io::Result<()> {
    for line in io::stdin().lock().lines() {
        let line = line?;
        let request = Reader { bytes: line.as_bytes(), at: 0 }.value();
        println!(r#"{{"id":{},{}}}"#, request.get("id").number(), answer(&request));
        io::stdout().flush()?;
    }
    Ok(())
}
