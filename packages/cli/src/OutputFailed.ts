import * as Data from "effect/Data"

/** The error of an output that could not be written: a disk is full, or its reader has ended. */
export class OutputFailed extends Data.TaggedError("OutputFailed")<{
  readonly detail: string
  /** Whether its reader has ended, as in `| head`: it has seen enough, and nothing is said of it. */
  readonly isReaderGone: boolean
}> {
  override get message() {
    return this.detail
  }
}

/** Makes the error of an output from what its stream said. */
export const of = (name: string, cause: unknown): OutputFailed => {
  // Cast, because the errors of streams have the system's codes.
  const { code } = cause as NodeJS.ErrnoException
  // Behind the first error, the stream only says that it is destroyed.
  const isReaderGone = code === "EPIPE" || code === "ERR_STREAM_DESTROYED"
  return new OutputFailed({
    detail: `${name}: ${cause instanceof Error ? cause.message : String(cause)}`,
    isReaderGone
  })
}
