/** Sparklines: the recent values of a number that this process has seen. All have the same size. */
import { Delay } from "@requeue/core"
import * as Format from "../format.ts"
import { html, type Html } from "../html.ts"
import * as History from "../work/history.ts"

/** The height of a line in units of the picture. A step is one unit wide. */
const height = 14

interface Point {
  readonly step: number
  readonly value: number
}

const pointsOf = (samples: ReadonlyArray<History.Sample>, field: "ready" | "dead"): ReadonlyArray<Point> =>
  samples.flatMap(({ step, [field]: value }) => (value === undefined ? [] : [{ step, value }]))

/**
 * Returns the path of a line through all points, with gaps between separate parts. Neighbouring points of the same height
 * are one stroke.
 */
const pathOf = (points: ReadonlyArray<Point>, last: number, most: number): string => {
  const y = ({ value }: Point): number => Math.round(10 * (1 + height * (1 - value / most))) / 10
  return points
    .map((point, index) => {
      const [before, next] = [points[index - 1], points[index + 1]]
      const x = History.steps - 1 - (last - point.step)
      if (before?.step !== point.step - 1) return `M${x} ${y(point)}h1`
      const isWithin = next?.step === point.step + 1 && next.value === point.value && before.value === point.value
      return isWithin ? "" : `L${x} ${y(point)}h1`
    })
    .join("")
}

/** Describes the course of the number in words. */
const words = (points: ReadonlyArray<Point>): string => {
  const values = points.map(({ value }) => value)
  const [first, last] = [points[0]!, points.at(-1)!]
  const time = Delay.format((last.step - first.step) * History.step)
  const most = Math.max(...values)
  const isPeak = most > Math.max(first.value, last.value)
  if (values.every((value) => value === first.value)) return `${Format.count(first.value)} for ${time}`
  return `from ${Format.count(first.value)} to ${Format.count(last.value)} in ${time}${isPeak ? `, ${Format.count(most)} at most` : ""}`
}

/** Renders the sparkline of a number. With fewer than two samples, it is empty. */
export const spark = (samples: ReadonlyArray<History.Sample>, field: "ready" | "dead"): Html => {
  const points = pointsOf(samples, field)
  if (points.length < 2) return html`<svg class="spark" viewBox="0 0 60 16" aria-hidden="true"></svg>`
  const path = pathOf(points, samples.at(-1)!.step, Math.max(1, ...points.map(({ value }) => value)))
  return html`<svg class="spark" viewBox="0 0 60 16" role="img">
    <title>${words(points)}</title>
    <path d="${path}" />
  </svg>`
}
