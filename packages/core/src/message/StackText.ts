/** Stack traces as text: lines that begin with a space are frames, the others are the errors that caused an error. */

/** The line in the place of frames that were left out. */
const gap = "    …"

/** Whether a line of a stack trace is a frame, or the rest of a message. */
const isFrame = (line: string): boolean => /^\s/.test(line)

/** At most so many frames of each error, the first ones. */
const withFrames = (lines: ReadonlyArray<string>, most: number): ReadonlyArray<string> => {
  let frames = 0
  return lines.flatMap((line) => {
    frames = isFrame(line) ? frames + 1 : 0
    if (frames <= most) return [line]
    return frames === most + 1 ? [gap] : []
  })
}

/**
 * The stack trace, shortened until it fits: first each error keeps fewer of its frames, since the last error of the chain is the
 * first cause; then errors are left out from the end. `undefined` where no line fits.
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
    if (fits(text)) return text
  }
  return undefined
}
