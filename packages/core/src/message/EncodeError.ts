/** The error of a message that cannot be sent as it is. */
import * as Data from "effect/Data"
import { quoted } from "../options/quoted.ts"

/** The most characters that the error shows of a problem or remedy, which may be a codec's own text. */
const longest = 2000

const cut = (text: string): string => (text.length > longest ? `${text.slice(0, longest)}…` : text)

/** The error of a send whose body, id or headers cannot be sent. Nothing was sent. */
export class EncodeError extends Data.TaggedError("EncodeError")<{
  readonly queue: string
  /** The wrong part: `body`, `id` or `headers`; in a batch with its position, such as `entries[3].body`. */
  readonly field: string
  /** The id that the sender gave to this message of a batch. */
  readonly id?: string | undefined
  /** The problem, with the limit if there is one. */
  readonly detail: string
  /** How to solve the problem. */
  readonly remedy: string
  /** The codec's own error. */
  readonly cause?: unknown
}> {
  override get message() {
    const id = this.id === undefined ? "" : ` (id ${this.id})`
    return `send to queue ${quoted(this.queue)}: ${this.field}${id}: ${cut(this.detail)}. ${cut(this.remedy)}`
  }
}
