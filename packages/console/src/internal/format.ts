/** Numbers, times and ages as people read them. */
import { html, type Html } from "./html.ts"

const grouped = new Intl.NumberFormat("en-US")

/** Formats a whole number with commas between thousands. */
export const count = (n: number): string => grouped.format(n)

/** Formats a number and its noun, which gets an `s` unless the number is 1. */
export const counted = (n: number, noun: string): string => `${count(n)} ${noun}${n === 1 ? "" : "s"}`

/** Formats a part of a whole in whole percent; `< 1 %` and `> 99 %` if rounding would give 0 or 100. */
export const share = (part: number, whole: number): string => {
  const percent = whole === 0 ? 0 : (100 * part) / whole
  if (percent > 0 && percent < 1) return "< 1 %"
  return percent > 99 && percent < 100 ? "> 99 %" : `${Math.round(percent)} %`
}

const units = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1000]
] as const

/** Formats an age in its two largest units, such as `3h 12m`; `now` below a second. */
const age = (millis: number): string => {
  const first = units.findIndex(([, length]) => millis >= length)
  if (first < 0) return "now"
  const shown = units.slice(first, first + 2).map(([name, length], index) => {
    const whole = Math.floor((index === 0 ? millis : millis % units[first]![1]) / length)
    return index === 0 || whole > 0 ? `${whole}${name}` : ""
  })
  return shown.join(" ").trim()
}

/**
 * Formats a time as an age, such as `3h 12m ago`, which the page's script updates. The title has the time. An unknown time
 * is `–`.
 */
export const ago = (at: number | undefined, now: number): Html | string => {
  if (at === undefined) return "–"
  const iso = new Date(at).toISOString()
  const text = age(now - at)
  return html`<time class="ago" datetime="${iso}" title="${iso}">${text === "now" ? text : `${text} ago`}</time>`
}

/** Formats a time with its date, in UTC. */
export const moment = (at: number): Html => {
  const iso = new Date(at).toISOString()
  return html`<time datetime="${iso}">${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC</time>`
}
