/** The error of a body that does not fit its queue's schema. */
import * as Data from "effect/Data"

/** One problem that the schema found in a body. */
export interface Issue {
  /** The place in the body, such as `items[2].price`; empty for the body itself. Cut after 256 characters. */
  readonly path: string
  /** The schema's own words, cut after 256 characters. Some libraries include the value. */
  readonly message: string
}

/** The issues that the error's message shows. */
const shown = 5

/** The characters of an issue that the error's message shows. */
const longest = 300

/**
 * The error of a body that does not fit its queue's schema. A send of such a body fails with an `EncodeError` whose
 * `cause` is this error. A received message is dead-lettered at once as `undecodable`, and no handler sees it.
 */
export class InvalidBody extends Data.TaggedError("InvalidBody")<{
  /** All problems, in the schema's order. */
  readonly issues: ReadonlyArray<Issue>
}> {
  readonly remedy = "Send a body that fits the queue's schema"

  override get message() {
    const more = this.issues.length - shown
    return [...this.issues.slice(0, shown).map(render), ...(more > 0 ? [`and ${more} more`] : [])].join("; ")
  }
}

/** Some libraries include the path in the message. */
const render = ({ message, path }: Issue): string => {
  const text = path === "" || message.startsWith(path) ? message : `${path}: ${message}`
  return text.length > longest ? `${text.slice(0, longest)}…` : text
}
