/**
 * Shortens stack traces as text. Lines that begin with a space are frames. The other lines are the errors of a cause
 * chain.
 */

/** The line that replaces omitted frames. */
const gap = "    …"

/** Whether a line of a stack trace is a frame, or the rest of a message. */
const isFrame = (line: string): boolean => /^\s/.test(line)

/** Keeps at most this many frames of each error, the first ones. */
const withFrames = (lines: ReadonlyArray<string>, most: number): ReadonlyArray<string> => {
  let frames = 0
  return lines.flatMap((line) => {
    frames = isFrame(line) ? frames + 1 : 0
    if (frames <= most) return [line]
    return frames === most + 1 ? [gap] : []
  })
}

/**
 * Shortens a stack trace until it fits. First it keeps fewer frames of each error, which keeps the root cause: the last error
 * of the chain. If that is not enough, it removes errors from the end. Returns `undefined` if no line fits.
 */
export const shorten = (stack: string, fits: (stack: string) => boolean): string | undefined => {
  if (stack === "") return undefined
  if (fits(stack)) return stack
  const lines = stack.split("\n")
  for (const most of [16, 12, 8, 6, 4, 3, 2]) {
    const text = withFrames(lines, most).join("\n")
    if (fits(text)) return text
  }
  const few = withFrames(lines, 1)
  for (let end = few.length; end > 0; end--) {
    const text = few.slice(0, end).join("\n")
    if (text !== "" && fits(text)) return text
  }
  return undefined
}
