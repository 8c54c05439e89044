/** The pages of jobs: all of them, and one. */
import { Delay } from "@requeue/core"
import type { DeadLetters } from "@requeue/operations"
import * as Format from "../format.ts"
import { html, type Html, type Part } from "../html.ts"
import { jobQuery, type Page, queryOf, type Visit } from "../visit.ts"
import { type Job, roleOf } from "../work/job.ts"
import * as Redrive from "../work/redrive.ts"
import { crumbs } from "./group.ts"
import { purgeForm } from "./letterForms.ts"
import { alarm, form, forThose } from "./parts.ts"
import { editedOf, exportedOf, number, purgedOf, reportOf, waitOf } from "./report.ts"

const names: { readonly [K in Job["kind"]]: string } = {
  plan: "Dry run",
  redrive: "Redrive",
  purge: "Purge",
  edit: "Edited copy",
  park: "Park",
  "purge-delayed": "Purge of delayed messages",
  export: "Export"
}

/** The page of what a job works on. */
const pageOf = ({ kind }: Job): "deadLetters" | "delayed" => (kind === "purge-delayed" ? "delayed" : "deadLetters")

/** How a job is, in a word or two. */
const stateOf = (job: Job): string => {
  const { ended, isStopping, trouble } = job
  if (ended === undefined) return isStopping ? "stopping" : "running"
  if (trouble !== undefined) return "failed"
  if (job.edited !== undefined) return job.edited.outcome === "succeeded" ? "done" : "not done"
  if (stoppedBy(job) !== undefined) return "stopped"
  return job.kind === "plan" ? "counted" : "done"
}

const stoppedBy = ({ exported, purged, report }: Job) => (report ?? purged ?? exported)?.stoppedBy

const isBad = (job: Job): boolean => ["failed", "stopped", "not done"].includes(stateOf(job))

/** Why it stopped, and what to do before it goes on. */
const stops: { readonly [By in DeadLetters.StoppedBy | "reader"]: string } = {
  reader: "The browser stopped reading. All letters are where they were: export them again.",
  "stop-at": `More than ${100 * Redrive.stopAt} % of a stage came back. Fix the cause, then go on.`,
  wait: "The published letters wait, and nothing leaves their queue. Start a consumer, then go on.",
  held: "Another reader, such as a look or a consumer, has letters that were here when it began. End it, then go on.",
  abort: "An operator stopped it. What it had not reached is where it was."
}

/** The fields that mean the letters of a job, also when nobody remembers the look that they were chosen from. */
const lettersOf = ({ id, place }: Job): Readonly<Record<string, string>> => ({ ...queryOf(place), again: id })

/** The form that counts the same letters for another queue. */
const elsewhere = (visit: Visit, job: Job): Part =>
  job.usedBy === undefined &&
  html`<details ${job.to !== undefined && html`open`}>
    <summary>To another queue…</summary>
    ${form(
      visit,
      "plan",
      lettersOf(job),
      html`<label
          >Queue
          <select name="to">
            <option value="">where each came from</option>
            ${job.targets.map(
              (name) => html`<option value="${name}" ${name === job.to && html`selected`}>${name}</option>`
            )}
          </select></label
        >
        <button>Count for that</button>`
    )}
  </details>`

/** The form that begins a redrive which was counted. */
const start = (visit: Visit, job: Job): Part => {
  const { id, report, usedBy } = job
  if (usedBy !== undefined) {
    return html`<p><a href="${visit.paths.to("job", { id: usedBy })}">The redrive that followed</a></p>`
  }
  const count = report?.redriven ?? 0
  if (count === 0) return html`<p class="soft">There is nothing to redrive.</p>`
  const fields = { ...lettersOf(job), plan: id }
  return form(
    visit,
    "redrive",
    fields,
    html`<fieldset>
        <legend>How</legend>
        <label
          ><input type="radio" name="how" value="stages" checked /> In stages of ${Redrive.stages.join(", ")} and the
          rest; it stops by itself when more than ${100 * Redrive.stopAt} % of a stage come
          back${job.pace !== undefined &&
          html`. <span class="soft">${waitOf(job.pace, "Behind each stage")}</span>`}</label
        >
        <label><input type="radio" name="how" value="at-once" /> All at once</label>
        <label
          >At most <input name="rate" inputmode="decimal" size="6" autocomplete="off" /> letters a second
          <span class="soft">(no limit where it is empty)</span></label
        >
      </fieldset>
      <button class="primary">
        Redrive ${Format.counted(count, "letter")}${job.to !== undefined && ` to ${job.to}`}
      </button>`
  )
}

/** The form that goes on with a job which did not come to its end. Jobs of other kinds begin on the page that it leads to. */
const goOn = (visit: Visit, job: Job): Part => {
  const fields = { ...lettersOf(job), to: job.to ?? "" }
  const forms: Partial<Record<Job["kind"], () => Part>> = {
    plan: () => form(visit, "plan", fields, html`<button class="primary">Count again</button>`),
    redrive: () => form(visit, "plan", fields, html`<button class="primary">Count what is left…</button>`),
    park: () => form(visit, "park", fields, html`<button class="primary">Park what is left</button>`),
    purge: () => purgeForm(visit, fields, "what is left")
  }
  return isBad(job) && forThose(visit, roleOf[job.kind], forms[job.kind]?.())
}

/** The page on which a job's letters are. */
const whereLeft = (visit: Visit, job: Job): Html => html`<p>
  <a href="${visit.paths.to(pageOf(job), queryOf(job.place))}"
    >${job.kind === "export" ? "" : "What is left in "}${job.place.queue}</a
  >
</p>`

/** The way on from a job that has ended. */
const next = (visit: Visit, job: Job): Part => {
  if (isBad(job)) return [goOn(visit, job), job.kind !== "plan" && whereLeft(visit, job)]
  return job.kind === "plan"
    ? forThose(visit, "redrive", [start(visit, job), elsewhere(visit, job)])
    : whereLeft(visit, job)
}

/** The part of a job's page that changes while it runs. */
export const progress = (visit: Visit, job: Job): Html => {
  const { ended, exported, kind, pace, purged, report, trouble } = job
  const by = stoppedBy(job)
  const stop = forThose(visit, roleOf[kind], form(visit, "stop", jobQuery(job), html`<button>Stop</button>`))
  return html`<p role="status" class="soft">
      ${stateOf(job)}${ended !== undefined &&
      html` in ${Delay.format(ended - job.begun)}, ${Format.ago(ended, visit.now)}`}
    </p>
    ${trouble !== undefined && alarm("It failed.", trouble)} ${by !== undefined && alarm("It stopped.", stops[by])}
    ${ended === undefined &&
    kind !== "plan" &&
    pace !== undefined &&
    html`<p class="soft">${waitOf(pace, kind === "edit" ? "Behind the copy" : "Behind each stage")}</p>`}
    ${report !== undefined && reportOf(job, report)} ${purged !== undefined && purgedOf(purged)}
    ${exported !== undefined && exportedOf(exported)} ${job.edited !== undefined && editedOf(job, job.edited)}
    ${ended === undefined ? stop : next(visit, job)}`
}

/** One job. */
export const job = (visit: Visit, job: Job): Page => {
  const { begun, ended, id, kind, operator, place, selection } = job
  const isLive = ended === undefined
  return {
    title: `${names[kind]} ${id}`,
    isLive,
    body: html`${crumbs(visit, place, pageOf(job))}
      <h1>${names[kind]}: ${selection.title}</h1>
      <p class="soft">job <span class="mono">${id}</span>, by ${operator}, ${Format.ago(begun, visit.now)}</p>
      <div class="panel job" ${isLive && html` data-live="${visit.paths.to("liveJob", jobQuery(job))}"`}>
        ${progress(visit, job)}
      </div>`
  }
}

const row = (visit: Visit, each: Job): Html => html`<tr>
  <th scope="row">
    <a href="${visit.paths.to("job", jobQuery(each))}">${names[each.kind]}</a>
    <span class="soft">${each.place.broker} / ${each.place.queue}</span>
  </th>
  <td class="wrap" data-label="letters">${each.selection.title}</td>
  <td data-label="state">${isBad(each) ? html`<span class="alarm">${stateOf(each)}</span>` : stateOf(each)}</td>
  <td class="n" data-label="done">
    ${number(each.kind === "plan" ? 0 : (each.purged?.removed ?? each.report?.redriven ?? each.exported?.written))}
  </td>
  <td data-label="by">${each.operator}</td>
  <td class="n" data-label="begun">${Format.ago(each.begun, visit.now)}</td>
</tr>`

/** All jobs of this process. */
export const jobs = (visit: Visit, all: ReadonlyArray<Job>): Page => ({
  title: "Jobs",
  isLive: all.some(({ ended }) => ended === undefined),
  body: html`<h1>Jobs</h1>
    ${all.length === 0
      ? html`<p class="soft">None since this process began. The audit has those of before.</p>`
      : html`<table class="panel jobs">
          <thead>
            <tr>
              <th scope="col">job</th>
              <th scope="col">letters</th>
              <th scope="col">state</th>
              <th scope="col" class="n">done</th>
              <th scope="col">by</th>
              <th scope="col" class="n">begun</th>
            </tr>
          </thead>
          <tbody>
            ${all.map((each) => row(visit, each))}
          </tbody>
        </table>`}`
})
