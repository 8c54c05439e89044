/** Numbers as pictures of text. */

const eighths = " ▁▂▃▄▅▆▇█"
const sideways = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"]

/** A bar as long as `value` is of `max`, in eighths of a character; anything above 0 is seen. */
export const bar = (value: number, max: number, width: number): string => {
  const parts = value <= 0 ? 0 : Math.max(1, Math.round((value / max) * width * 8))
  return "█".repeat(Math.floor(parts / 8)) + sideways[parts % 8]!
}

/** The values squeezed or stretched to so many columns; the largest of those that fall together. */
const resample = (values: ReadonlyArray<number>, width: number): ReadonlyArray<number> =>
  Array.from({ length: width }, (_, column) => {
    const from = Math.floor((column * values.length) / width)
    const to = Math.max(from + 1, Math.floor(((column + 1) * values.length) / width))
    return Math.max(...values.slice(from, to))
  })

/** Columns of the values, the highest as high as the plot, from top to bottom. */
export const columns = (
  values: ReadonlyArray<number>,
  { height, width }: { readonly height: number; readonly width: number }
): ReadonlyArray<string> => {
  const max = Math.max(...values, 1)
  const heights = resample(values, width).map((value) => (value <= 0 ? 0 : Math.max(1, (value / max) * height * 8)))
  return Array.from({ length: height }, (_, row) => {
    const below = (height - 1 - row) * 8
    return heights.map((parts) => eighths[Math.max(0, Math.min(8, Math.round(parts - below)))]).join("")
  })
}
