import * as Data from "effect/Data"

/**
 * The error of an output that could not be written: the disk is full, or the program that reads the output has ended.
 */
export class OutputFailed extends Data.TaggedError("OutputFailed")<{
  readonly detail: string
  /** Whether the program that reads the output has ended, as with `| head`. Then no error is printed. */
  readonly isReaderGone: boolean
}> {
  override get message() {
    return this.detail
  }
}

/** Makes the error of an output from the error of its stream. */
export const of = (name: string, cause: unknown): OutputFailed => {
  // Cast, because the errors of streams have the system's codes.
  const { code } = cause as NodeJS.ErrnoException
  // After the first error, the stream only reports that it is destroyed.
  const isReaderGone = code === "EPIPE" || code === "ERR_STREAM_DESTROYED"
  return new OutputFailed({
    detail: `${name}: ${cause instanceof Error ? cause.message : String(cause)}`,
    isReaderGone
  })
}
