/** Delays of retries in words. */
import { type Backoff, Delay, type Jitter } from "@requeue/core"

/** The most delays of a list to show. */
const most = 12

const listed = (delays: ReadonlyArray<number>): string => {
  const shown = delays.slice(0, most).map(Delay.format).join(", ")
  return delays.length > most ? `${shown} and ${delays.length - most} more` : shown
}

const percent = (share: number): string => `${Math.round(share * 1000) / 10} %`

/** How a curve grows, after `after`. */
const curve = (self: Exclude<Backoff.Curve, { _tag: "Switch" }>): string => {
  switch (self._tag) {
    case "Constant":
      return self.delay === 0 ? "at once" : `after ${Delay.format(self.delay)}, each time`
    case "Linear":
      return `after ${Delay.format(self.step)}, and each time ${Delay.format(self.step)} later than the time before`
    case "Exponential":
      return self.factor === 1
        ? `after ${Delay.format(self.base)}, each time`
        : `after ${Delay.format(self.base)}, and each time after ${self.factor} times as long as the time before`
    case "Sequence":
      return self.delays.length === 1
        ? `after ${listed(self.delays)}, each time`
        : `after ${listed(self.delays)}; from there on the last of these repeats`
  }
}

const spread = (jitter: Jitter.Jitter): string | undefined => {
  switch (jitter) {
    case "none":
      return undefined
    case "full":
      return "Each delay is random between 0 and that, so messages that failed together are retried at different times."
    case "equal":
      return "Each delay is random between half of that and all of it, so messages that failed together are retried at different times."
    case "decorrelated":
      return "Each delay is random between the first one and three times the one before."
    default:
      return `Each delay is random within ${percent(jitter.proportional)} of that, so messages that failed together are retried at different times.`
  }
}

const capOf = ({ curve, max }: Backoff.Backoff): string | undefined => {
  const grows =
    (curve._tag === "Linear" && curve.step > 0) ||
    (curve._tag === "Exponential" && curve.factor > 1) ||
    (curve._tag !== "Switch" && max < Delay.max)
  return grows ? `No delay is longer than ${Delay.format(max)}.` : undefined
}

/** A backoff in sentences; `who` is the subject, such as `A retry comes`. */
export const sentences = (self: Backoff.Backoff, who: string): ReadonlyArray<string> => {
  if (self.curve._tag === "Switch") {
    const { after, first, next } = self.curve
    const capped = self.max < Delay.max ? [`No delay is longer than ${Delay.format(self.max)}.`] : []
    return [
      ...sentences(first, `After each of the first ${after === 1 ? "failure" : `${after} failures`}, a retry comes`),
      ...sentences(next, "From there on, a retry comes"),
      ...capped
    ]
  }
  const said = [`${who} ${curve(self.curve)}.`, spread(self.jitter), capOf(self)]
  return said.filter((sentence) => sentence !== undefined)
}
