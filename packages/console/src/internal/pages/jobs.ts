/** The pages of jobs: all of them, and one. */
import { Delay } from "@requeue/core"
import type { DeadLetters } from "@requeue/operations"
import * as Format from "../format.ts"
import { html, type Html, type Part } from "../html.ts"
import { jobQuery, type Page, queryOf, type Visit } from "../visit.ts"
import { type Job, roleOf } from "../work/job.ts"
import * as Redrive from "../work/redrive.ts"
import { crumbs } from "./group.ts"
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
  return stoppedBy(job) === undefined ? "done" : "stopped"
}

const stoppedBy = ({ exported, purged, report }: Job) => (report ?? purged ?? exported)?.stoppedBy

const isBad = (job: Job): boolean => ["failed", "stopped", "not done"].includes(stateOf(job))

const stops: { readonly [By in DeadLetters.StoppedBy | "reader"]: string } = {
  reader: "Whoever asked for it reads no more. All letters are where they were.",
  "stop-at": `More than ${100 * Redrive.stopAt} % of a stage came back.`,
  wait: "What was published waits, and nothing leaves its queue. Is a consumer running?",
  held: "Another reader, such as a look or a consumer, has letters that were here when it began.",
  abort: "An operator stopped it."
}

/** The fields that mean the letters of a job. */
const lettersOf = ({ place, selection: { cause, letter } }: Job): Readonly<Record<string, string>> => ({
  ...queryOf(place),
  ...(cause === undefined ? {} : { cause }),
  ...(letter === undefined ? {} : { letter })
})

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

/** The part of a job's page that changes while it runs. */
export const progress = (visit: Visit, job: Job): Html => {
  const { ended, exported, kind, pace, place, purged, report, trouble } = job
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
    ${ended === undefined
      ? stop
      : kind === "plan"
        ? forThose(visit, "redrive", trouble === undefined && [start(visit, job), elsewhere(visit, job)])
        : html`<p>
            <a href="${visit.paths.to(pageOf(job), queryOf(place))}"
              >${kind === "export" ? "" : "What is left in "}${place.queue}</a
            >
          </p>`}`
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
    ${number(each.purged?.removed ?? each.report?.redriven ?? each.exported?.written)}
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
