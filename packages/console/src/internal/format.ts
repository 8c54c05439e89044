/** Numbers, times and ages as people read them. */
import { Delay } from "@requeue/core"
import { html, type Html } from "./html.ts"

const grouped = new Intl.NumberFormat("en-US")

/** A whole number with commas between thousands. */
export const count = (n: number): string => grouped.format(n)

/** A number and its noun, which takes an s unless it is one. */
export const counted = (n: number, noun: string): string => `${count(n)} ${noun}${n === 1 ? "" : "s"}`

/** The part of a whole, in percent, without decimals; `< 1 %` where that would be none. */
export const share = (part: number, whole: number): string => {
  const percent = whole === 0 ? 0 : (100 * part) / whole
  return percent > 0 && percent < 1 ? "< 1 %" : `${Math.floor(percent)} %`
}

/** A time as an age, `3h 12m ago`; its title has the time itself. */
export const ago = (at: number, now: number): Html => {
  const iso = new Date(at).toISOString()
  const age = now - at
  return html`<time datetime="${iso}" title="${iso}">${age < 1000 ? "now" : `${Delay.format(age)} ago`}</time>`
}

/** A time of day with its date, in UTC. */
export const moment = (at: number): Html => {
  const iso = new Date(at).toISOString()
  return html`<time datetime="${iso}">${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC</time>`
}
