/** Lines of a stream of bytes, each in UTF-8. */
import type { Readable } from "node:stream"

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** Decodes a line; returns `undefined` if it is not UTF-8. It removes a byte order mark, which some editors write. */
const decode = (bytes: Uint8Array, isFirst: boolean): string | undefined => {
  try {
    const text = decoder.decode(bytes)
    return isFirst && text.startsWith("\ufeff") ? text.slice(1) : text
  } catch {
    return undefined
  }
}

/**
 * Reads lines without their ends. A line that is not UTF-8 becomes `undefined`. Only `\n` ends a line: JSON may contain
 * U+2028 and U+2029, which end lines for `node:readline`. Throws the errors of the stream.
 */
export async function* of(input: Readable): AsyncGenerator<string | undefined, void> {
  let begun: Array<Uint8Array> = []
  let isFirst = true
  const take = (rest: Uint8Array) => {
    const line = decode(Buffer.concat([...begun, rest]), isFirst)
    begun = []
    isFirst = false
    return line
  }
  // Cast, because a stream without an encoding has bytes.
  for await (const chunk of input as AsyncIterable<Uint8Array>) {
    let from = 0
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, from)) {
      yield take(chunk.subarray(from, at))
      from = at + 1
    }
    begun.push(chunk.subarray(from))
  }
  if (begun.some(({ length }) => length > 0)) yield take(new Uint8Array())
}
