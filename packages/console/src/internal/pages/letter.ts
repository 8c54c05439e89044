/** The page of one letter. It shows the body on request, to operators who may see bodies. */
import { Delay } from "@requeue/core"
import { type Capabilities } from "@requeue/core/port"
import * as Format from "../format.ts"
import { html, type Html, type Part } from "../html.ts"
import type { Place } from "../paths.ts"
import { type Page, queryOf, type Visit } from "../visit.ts"
import { type Body, longestText as longest } from "../work/body.ts"
import type { Kept } from "../work/letters.ts"
import { cost, letterForms, planForm } from "./letterForms.ts"
import * as Hex from "./hex.ts"
import { crumbs, facts, form, forThose } from "./parts.ts"

/** A letter, and its body if the operator has asked for it. */
export interface Shown {
  readonly place: Place
  readonly cause: string
  readonly letter: Kept
  /** The headers that the operator may see. */
  readonly headers: Kept["headers"]
  readonly capabilities: Capabilities.Capabilities
  readonly body: Body | undefined
  /** The address of the letter's trace; `undefined` if it has none. */
  readonly trace: string | undefined
  /** The numbers of letters of the cause with the same id, this letter included, and of those that are identical. */
  readonly twins: { readonly namesakes: number; readonly alike: number }
}

const textOf = (body: Body): string => (body._tag === "Text" ? body.text.slice(0, longest) : Hex.dump(body.bytes))

const kindOf = (body: Body): string => {
  const fits = body._tag === "Text" ? body.text.length <= longest : body.bytes.length <= Hex.longest
  const whole = body.isWhole && fits
  return `${body._tag === "Text" ? body.kind : "not a text"}, ${Format.counted(body.size, "byte")}${whole ? "" : ", the beginning is shown"}`
}

const bodyOf = (visit: Visit, { body, capabilities, cause, letter, place }: Shown): Html => {
  if (body !== undefined) {
    return html`<h2>Body <span class="soft">${kindOf(body)}</span></h2>
      <pre class="panel${body._tag === "Text" ? " lines" : ""}" tabindex="0" role="region" aria-label="Body">
${textOf(body)}</pre
      >`
  }
  const ask = html`<button>Show the body</button>
    <span class="soft"
      >${Format.counted(letter.size, "byte")}. ${cost(capabilities)}. The audit records your name</span
    >`
  const offer: Part = visit.may.has("bodies")
    ? form(visit, "letter", { ...queryOf(place), cause, letter: letter.key }, ask)
    : html`<p class="soft">${Format.counted(letter.size, "byte")}. Your role may not see bodies</p>`
  return html`<h2>Body</h2>
    ${offer}`
}

/** A moment in the life of a letter. */
interface Moment {
  readonly at: number
  readonly what: string
  readonly text: Part
}

/** Returns the moments of a letter in order: published, failed attempts, dead-lettered. */
const momentsOf = ({ history, origin, publishedAt }: Kept): ReadonlyArray<Moment> => [
  ...(publishedAt === undefined ? [] : [{ at: publishedAt, what: "published", text: "" }]),
  ...history.map(({ at, attempt, delay, error }) => ({
    at,
    what: `attempt ${attempt}`,
    text: html`${error} <span class="soft">→ retry after ${Delay.format(delay)}</span>`
  })),
  ...(origin === undefined
    ? []
    : [
        {
          at: origin.at,
          what: `attempt ${origin.attempts}`,
          text: html`<b>${origin.error.name}: ${origin.error.message}</b>
            <span class="soft">→ dead letter, ${origin.reason}</span>`
        }
      ])
]

/** Returns the time since the previous moment. It can be negative, because the clocks of machines differ. */
const gap = (moments: ReadonlyArray<Moment>, index: number): string => {
  const before = moments[index - 1]
  const passed = before === undefined ? undefined : moments[index]!.at - before.at
  return passed === undefined ? "" : `${passed < 0 ? "−" : "+"}${Delay.format(Math.abs(passed))}`
}

const timeline = (letter: Kept): Html => {
  const moments = momentsOf(letter)
  return html`<ol class="panel timeline">
    ${moments.map(
      ({ at, text, what }, index) =>
        html`<li>
          ${Format.moment(at)} <span class="soft n">${gap(moments, index)}</span> <span>${what}</span>
          <span>${text}</span>
        </li>`
    )}
  </ol>`
}

/** Renders the stack trace of the last error, for operators who may see it. */
const stackOf = ({ origin }: Kept): Part => {
  const stack = origin?.error.stack
  return stack === undefined
    ? ""
    : html`<h2>Stack trace</h2>
        <pre class="panel lines" tabindex="0" role="region" aria-label="Stack trace">${stack}</pre>`
}

const headersOf = (headers: Kept["headers"]): Html =>
  Object.keys(headers).length === 0
    ? html`<p class="soft">None.</p>`
    : html`<table class="panel headers">
        <thead class="unseen">
          <tr>
            <th scope="col">name</th>
            <th scope="col">value</th>
          </tr>
        </thead>
        <tbody>
          ${Object.entries(headers).map(
            ([name, value]) =>
              html`<tr>
                <th scope="row" class="mono">${name}</th>
                <td class="mono wrap">${value}</td>
              </tr>`
          )}
        </tbody>
      </table>`

const redriveForm = (visit: Visit, { capabilities, cause, letter, place }: Shown): Html =>
  planForm(
    visit,
    { place, capabilities, cause, letter: letter.key },
    html`<button class="primary">Redrive this letter…</button>`
  )

const editForm = (visit: Visit, { cause, letter, place }: Shown): Html =>
  form(visit, "edit", { ...queryOf(place), cause, letter: letter.key }, html`<button>Edit a copy…</button>`)

/** Describes other letters with the same id. */
const twinsOf = ({ twins: { alike, namesakes } }: Shown): ReadonlyArray<readonly [string, Part]> =>
  namesakes === 1
    ? []
    : [
        [
          "letters with this id",
          `${namesakes}${alike === 1 ? "" : `, ${alike} of them identical: an action takes one of those`}`
        ]
      ]

/** Renders the key of a letter, how many messages wait for it, and whose it is. */
const orderOf = ({ fairBy, keyed: { blocks, key } }: Kept): ReadonlyArray<readonly [string, Part]> => [
  ...(key === undefined ? [] : [["key", html`<span class="mono">${key}</span>`] as const]),
  ...(blocks === undefined ? [] : [["parked", `${Format.counted(blocks, "message")} of its key wait`] as const]),
  ...(fairBy === undefined ? [] : [["fairBy", html`<span class="mono">${fairBy}</span>`] as const])
]

/** Renders the page of a letter. */
export const letter = (visit: Visit, shown: Shown): Page => {
  const { cause, letter, place, trace } = shown
  const { id, operation, origin, publishedAt, redrives } = letter
  return {
    title: id,
    body: html`<div class="head">
        <div>
          ${crumbs(visit, place)}
          <h1 class="mono">${id}</h1>
        </div>
        <div class="do">
          ${forThose(visit, "redrive", redriveForm(visit, shown))}${forThose(
            visit,
            "redrive",
            forThose(visit, "bodies", editForm(visit, shown))
          )}
        </div>
      </div>
      ${facts([
        [
          "cause",
          html`<a href="${visit.paths.to("group", { ...queryOf(place), cause })}"
            >${origin?.error.name ?? "unknown"}</a
          >`
        ],
        ["reason", origin?.reason ?? "not dead-lettered by Requeue"],
        ["from", origin?.queue ?? "unknown"],
        ["attempts", origin?.attempts ?? "–"],
        ["redriven", Format.counted(redrives, "time")],
        ...orderOf(letter),
        ...twinsOf(shown),
        ...(operation === undefined ? [] : [["last operation", html`<span class="mono">${operation}</span>`] as const]),
        ["published", Format.ago(publishedAt, visit.now)],
        ...(trace === undefined
          ? []
          : [["trace", html`<a href="${trace}" target="_blank" rel="noopener noreferrer">open</a>`] as const])
      ])}
      ${bodyOf(visit, shown)}
      <h2>History</h2>
      ${momentsOf(letter).length === 0 ? html`<p class="soft">None.</p>` : timeline(letter)} ${stackOf(letter)}
      <h2>Headers</h2>
      ${headersOf(shown.headers)}
      <div class="more">
        ${letterForms(visit, { place, capabilities: shown.capabilities, cause, letter: letter.key }, "this letter")}
      </div>`
  }
}
