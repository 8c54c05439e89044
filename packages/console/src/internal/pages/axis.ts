/** Axes of plots. Positions are in percent of the width, so a plot fits every screen without a script. */
import { Delay } from "@requeue/core"
import { html, type Html } from "../html.ts"

/** An axis of time, from 0. */
export interface Axis {
  /** The position of a time, in percent of the plot's width. */
  readonly at: (millis: number) => number
  readonly ticks: ReadonlyArray<{ readonly at: number; readonly label: string }>
}

const second = 1000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

/** Round times for ticks. */
const round = [
  1,
  10,
  100,
  500,
  ...[1, 2, 5, 10, 20, 30].map((n) => n * second),
  ...[1, 2, 5, 10, 20, 30].map((n) => n * minute),
  ...[1, 2, 3, 6, 12].map((n) => n * hour),
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].map((n) => n * day)
]

/** The smallest distance between two ticks, in percent of the width, at which their labels do not touch. */
const apart = 17

const label = (millis: number): string => (millis === 0 ? "0" : Delay.format(millis))

/** Rounds percent to two digits, without `-0`. */
export const percent = (n: number): number => Math.round(100 * n) / 100 + 0

/** Returns times for the ticks of a linear axis: multiples of a round time. */
const even = (last: number): ReadonlyArray<number> => {
  const step = round.find((each) => each >= last / 4) ?? last
  return Array.from({ length: 1 + Math.floor(last / step) }, (_, index) => index * step)
}

/**
 * Makes an axis from 0 to `last`, between two positions in percent. It is logarithmic if the first time is much shorter
 * than the last.
 */
export const time = (
  { first, last }: { readonly first: number; readonly last: number },
  [from, to]: readonly [number, number]
): Axis => {
  const isLogarithmic = first > 0 && last / first > 40
  const part = (millis: number): number => {
    const within = Math.max(0, Math.min(millis, last))
    if (last <= 0) return 0
    return isLogarithmic ? Math.log1p(within / first) / Math.log1p(last / first) : within / last
  }
  const at = (millis: number): number => percent(from + (to - from) * part(millis))
  const wanted = last <= 0 ? [0] : isLogarithmic ? [0, ...round.filter((each) => each <= last)] : even(last)
  const ticks: Array<Axis["ticks"][number]> = []
  for (const millis of wanted) {
    const position = at(millis)
    if (ticks.length === 0 || position - ticks.at(-1)!.at >= apart) ticks.push({ at: position, label: label(millis) })
  }
  return { at, ticks }
}

/** Draws the axis below a plot of this height, with grid lines. The axis takes 18 pixels. */
export const drawn = ({ ticks }: Axis, height: number): ReadonlyArray<Html> =>
  ticks.map(({ at, label }) => {
    const anchor = at < 6 ? "start" : at > 92 ? "end" : "middle"
    return html`<line class="grid" x1="${at}%" x2="${at}%" y1="0" y2="${height}" /><text
        class="tick"
        x="${at}%"
        y="${height + 14}"
        text-anchor="${anchor}"
        >${label}</text
      >`
  })

/** The height of an axis in pixels. */
export const room = 18
