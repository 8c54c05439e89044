/** A config file that cannot be used: everything that is wrong with it, each with its path and what to do about it. */
import type { StrictSchema } from "@requeue/core/schema"
import * as Data from "effect/Data"

/** `queues.orders.retry`, `brokers["a.b"].url` */
const show = (path: StrictSchema.Problem["path"]): string =>
  path
    .map((key, index) => {
      if (typeof key === "number") return `[${key}]`
      return /^[\w$-]+$/.test(key) ? `${index === 0 ? "" : "."}${key}` : `[${JSON.stringify(key)}]`
    })
    .join("")

const line = ({ detail, path, remedy }: StrictSchema.Problem): string =>
  `${path.length === 0 ? "" : `${show(path)}: `}${detail}${remedy === undefined ? "" : `. ${remedy}`}`

export class ConfigFileError extends Data.TaggedError("ConfigFileError")<{
  /** The file's name, as it was found or asked for. */
  readonly file: string
  /** At least one. */
  readonly problems: ReadonlyArray<StrictSchema.Problem>
}> {
  override get message() {
    return this.problems.map((problem) => `${this.file}: ${line(problem)}`).join("\n")
  }
}
