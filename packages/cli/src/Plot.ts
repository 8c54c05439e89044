/** Bars and columns made of text. */

const eighths = " ▁▂▃▄▅▆▇█"
const sideways = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"]

/** Draws a bar that is `width` characters long for `max`. A value above 0 is at least an eighth of a character. */
export const bar = (value: number, max: number, width: number): string => {
  const parts = value <= 0 ? 0 : Math.max(1, Math.round((value / max) * width * 8))
  return "█".repeat(Math.floor(parts / 8)) + sideways[parts % 8]!
}

/** Spreads values over a number of columns. A column that stands for several values has the largest of them. */
const resample = (values: ReadonlyArray<number>, width: number): ReadonlyArray<number> =>
  Array.from({ length: width }, (_, column) => {
    const from = Math.floor((column * values.length) / width)
    const to = Math.max(from + 1, Math.floor(((column + 1) * values.length) / width))
    return Math.max(...values.slice(from, to))
  })

/** Draws values as columns, the largest as high as the plot; returns its lines from top to bottom. */
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
