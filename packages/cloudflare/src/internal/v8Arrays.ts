/**
 * Checks the length of arrays in v8's serialized bytes. V8 allocates an array before it reads its elements: 13 foreign bytes
 * can make it allocate 33 million elements, and nested arrays can do so repeatedly.
 *
 * The format: https://source.chromium.org/chromium/chromium/src/+/main:v8/src/objects/value-serializer.cc, and for typed
 * arrays https://nodejs.org/api/v8.html#class-v8defaultserializer
 */

/** Elements that sparse arrays may have beyond the bytes of a message. Each element of other arrays takes at least a byte. */
const spareElements = 100_000

/** The first version in which all parts have the sizes below; V8 has written it since 2022. */
const firstVersion = 14

/** Tags by the number of bytes that follow them. */
const fixed: Readonly<Record<string, number>> = { _: 0, "0": 0, T: 0, F: 0, x: 0, y: 0, "-": 0, N: 8, D: 8, n: 8 }
/** Tags by how many numbers follow them. */
const numbers: Readonly<Record<string, number>> = { I: 1, U: 1, "^": 1, V: 4 }
/** Tags before a length and as many bytes. */
const blocks = '"ScB'
/** Tags before a list of values, each with the tag that ends the list, and how many numbers follow that. */
const lists: Readonly<Record<string, readonly [string, number]>> = {
  o: ["{", 1],
  A: ["$", 2],
  a: ["@", 2],
  ";": [":", 1],
  "'": [",", 1]
}

/** Reads bytes in order. */
class Reader {
  #at = 0
  readonly #bytes: Uint8Array

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  refuse(problem: string): never {
    throw new TypeError(`v8: ${problem} at byte ${this.#at} of ${this.#bytes.length}`)
  }

  skip(count: number): void {
    this.#at += count
    if (this.#at > this.#bytes.length) this.refuse("the bytes end too early")
  }

  /** Reads a number: seven bits per byte, lowest first. */
  number(): number {
    let value = 0
    for (let factor = 1; ; factor *= 128) {
      const byte = this.#bytes[this.#at] ?? 0
      this.skip(1)
      value += (byte & 127) * factor
      if (byte < 128) return value
    }
  }

  skipNumbers(count: number): void {
    for (let n = 0; n < count; n++) this.number()
  }

  /** Returns the next tag after padding, without reading it; empty at the end. */
  peek(): string {
    while (this.#bytes[this.#at] === 0) this.#at++
    return this.#at < this.#bytes.length ? String.fromCharCode(this.#bytes[this.#at]!) : ""
  }

  /** Reads the next tag. */
  tag(): string {
    const tag = this.peek()
    this.skip(1)
    return tag
  }
}

/**
 * Refuses bytes whose arrays have more elements than bytes, plus 100,000 for sparse arrays.
 *
 * @throws TypeError for such bytes, and for bytes that are not a serialized value
 */
export const verify = (bytes: Uint8Array): void => {
  const reader = new Reader(bytes)
  let elements = bytes.length + spareElements

  const list = (tag: string): void => {
    if (tag === "A" || tag === "a") {
      elements -= reader.number()
      if (elements < 0) reader.refuse("arrays with more elements than the bytes can hold")
    }
    const [end, count] = lists[tag]!
    while (reader.peek() !== end) value()
    reader.skip(1)
    reader.skipNumbers(count)
  }

  /** An error has separate tags for its message, stack, cause and kind. */
  const error = (): void => {
    for (let tag = reader.tag(); tag !== "."; tag = reader.tag()) {
      if (tag === "m" || tag === "s" || tag === "c") value()
      else if (!"EFRSTU".includes(tag)) reader.refuse("an unknown part of an error")
    }
  }

  const value = (): void => {
    const tag = reader.tag()
    if (fixed[tag] !== undefined) return reader.skip(fixed[tag])
    if (numbers[tag] !== undefined) return reader.skipNumbers(numbers[tag])
    if (lists[tag] !== undefined) return list(tag)
    if (blocks.includes(tag)) return reader.skip(reader.number())
    switch (tag) {
      // A BigInt: the sign in the lowest bit, then the number of bytes.
      case "Z":
      case "z":
        return reader.skip(Math.floor(reader.number() / 2))
      // A String object.
      case "s":
        return value()
      // A pattern and its flags.
      case "R":
        value()
        return reader.skipNumbers(1)
      // A resizable buffer: its length and its maximum.
      case "~": {
        const length = reader.number()
        reader.skipNumbers(1)
        return reader.skip(length)
      }
      // A typed array, as Node writes it: its kind and its bytes.
      case "\\":
        reader.skipNumbers(1)
        return reader.skip(reader.number())
      case "r":
        return error()
      default:
        return reader.refuse(`the unknown tag ${JSON.stringify(tag)}`)
    }
  }

  if (bytes[0] !== 0xff) reader.refuse("no version")
  reader.skip(1)
  if (reader.number() < firstVersion) reader.refuse("an old version")
  value()
}
