/** The page of all jobs, and the page of one. */
import { Delay } from "@requeue/core"
import type { DeadLetters } from "@requeue/operations"
import * as Format from "../format.ts"
import { html, type Html, type Part } from "../html.ts"
import { jobQuery, type Page, queryOf, type Visit } from "../visit.ts"
import { type Job, roleOf } from "../work/job.ts"
import * as Redrive from "../work/redrive.ts"
import { purgeForm } from "./letterForms.ts"
import { alarm, crumbs, form, forThose, type Problem, textField } from "./parts.ts"
import { editedOf, exportedOf, failedOf, number, purgedOf, reportOf, waitOf } from "./report.ts"

const names: { readonly [K in Job["kind"]]: string } = {
  plan: "Dry run",
  redrive: "Redrive",
  purge: "Purge",
  edit: "Edited copy",
  park: "Park",
  "purge-delayed": "Purge of delayed messages",
  export: "Export"
}

/** Returns the page of the queue that a job works on. */
const pageOf = ({ kind }: Job): "deadLetters" | "delayed" => (kind === "purge-delayed" ? "delayed" : "deadLetters")

/** Describes the letters that the broker refused, or published and did not remove. */
const failures = ({ report }: Job): string => {
  const { refused = 0, unremoved = 0 } = report ?? {}
  const parts = [
    ...(refused === 0 ? [] : [`${Format.count(refused)} refused`]),
    ...(unremoved === 0 ? [] : [`${Format.count(unremoved)} in both queues`])
  ]
  return parts.join(", ")
}

/** Describes the state of a job. */
const stateOf = (job: Job): string => {
  const { ended, isStopping, trouble } = job
  if (ended === undefined) return isStopping ? "stopping" : "running"
  if (trouble !== undefined) return "failed"
  if (job.edited !== undefined) return job.edited.outcome === "succeeded" ? "done" : "not done"
  if (stoppedBy(job) !== undefined) return "stopped"
  if (failures(job) !== "") return `done, ${failures(job)}`
  return job.kind === "plan" ? "counted" : "done"
}

const stoppedBy = ({ exported, purged, report }: Job) => (report ?? purged ?? exported)?.stoppedBy

const isBad = (job: Job): boolean =>
  ["failed", "stopped", "not done"].includes(stateOf(job)) || (job.ended !== undefined && failures(job) !== "")

/** For each reason to stop: why a job stopped, and what to do before it goes on. */
const stops = ({ staged }: Job): { readonly [By in DeadLetters.StoppedBy | "reader"]: string } => ({
  reader: "The browser stopped reading. All letters are still in the queue: export them again.",
  "stop-at": `More than ${percent((staged ?? Redrive).stopAt)} % of a stage came back. Fix the cause, then go on.`,
  wait: "The published letters wait, and no letter leaves their queue. Start a consumer, then go on.",
  held: "Another reader, such as a browse or a consumer, holds letters that were in the queue when the job began. Stop that reader, then go on.",
  abort: "An operator stopped it. The letters that it had not reached are still in the queue."
})

/**
 * Returns the form fields that select the letters of a job. They work even after the console has forgotten the browse of
 * the letters.
 */
const lettersOf = ({ id, place }: Job): Readonly<Record<string, string>> => ({ ...queryOf(place), again: id })

/** Renders the form that counts the same letters for another target queue. */
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
            <option value="">the queue that each letter came from</option>
            ${job.targets.map(
              (name) => html`<option value="${name}" ${name === job.to && html`selected`}>${name}</option>`
            )}
          </select></label
        >
        <button>Count for this queue</button>`
    )}
  </details>`

/** Returns a part of 1 in percent. */
const percent = (part: number): number => Number((100 * part).toFixed(6))

const howOf = (problem: Problem | undefined): string => problem?.typed.get("how") ?? "stages"

/** Renders the fields of a redrive. */
const how = ({ pace }: Job, problem: Problem | undefined): Html => html`<fieldset>
  <legend>How</legend>
  <label
    ><input type="radio" name="how" value="stages" ${howOf(problem) === "stages" && html`checked`} /> In stages. The
    redrive stops when too many letters of a stage come
    back${pace !== undefined && html`. <span class="soft">${waitOf(pace, "After each stage")}</span>`}</label
  >
  <label class="inner"
    >First stages
    ${textField("stages", problem, {
      value: Redrive.stages.join(", "),
      attributes: html`inputmode="numeric" size="12"`
    })}
    letters <span class="soft">(the last stage takes the rest)</span></label
  >
  <label class="inner"
    >Stop when more than
    ${textField("stopAt", problem, {
      value: String(percent(Redrive.stopAt)),
      attributes: html`inputmode="decimal" size="4"`
    })}
    % of a stage come back</label
  >
  <label
    ><input type="radio" name="how" value="at-once" ${howOf(problem) === "at-once" && html`checked`} /> All at
    once</label
  >
  <label class="rate"
    >At most ${textField("rate", problem, { attributes: html`inputmode="decimal" size="6"` })} letters a second
    <span class="soft">(empty: no limit)</span></label
  >
</fieldset>`

/** Renders the form that begins a redrive after its dry run. */
const start = (visit: Visit, job: Job, problem: Problem | undefined): Part => {
  const { id, report, usedBy } = job
  if (usedBy !== undefined) {
    return html`<p><a href="${visit.paths.to("job", { id: usedBy })}">Open the redrive that followed</a></p>`
  }
  const count = report?.redriven ?? 0
  if (count === 0) return html`<p class="soft">There is nothing to redrive.</p>`
  const fields = { ...lettersOf(job), plan: id }
  return form(
    visit,
    "redrive",
    fields,
    html`${how(job, problem)}
      <button class="primary">
        Redrive ${Format.counted(count, "letter")}${job.to !== undefined && ` to ${job.to}`}
      </button>`
  )
}

/**
 * Renders the form that continues a redrive which stopped early. Jobs of other kinds begin again on the page of the queue.
 */
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

/** Renders a link to the queue of a job's letters. */
const whereLeft = (visit: Visit, job: Job): Html => html`<p>
  <a href="${visit.paths.to(pageOf(job), queryOf(job.place))}"
    >${job.kind === "export" ? "" : "What is left in "}${job.place.queue}</a
  >
</p>`

/** Renders links to letters that came back: those that were dead-lettered since the redrive began. */
const cameBack = (visit: Visit, { operation, place: { broker, queue }, report }: Job): Part => {
  if (operation === undefined || (report?.cameBack ?? 0) + (report?.repeated ?? 0) === 0) return undefined
  const since = new Date(operation.begun).toISOString()
  return html`<p>
    To go on passes over the letters that came back.
    <a href="${visit.paths.to("deadLetters", { broker, queue, since })}"
      >Letters dead-lettered since the redrive began</a
    >
  </p>`
}

/** Renders the actions after a job has ended. */
const next = (visit: Visit, job: Job, problem: Problem | undefined): Part => {
  const back = cameBack(visit, job)
  if (isBad(job)) return [back, goOn(visit, job), job.kind !== "plan" && whereLeft(visit, job)]
  return job.kind === "plan"
    ? [back, forThose(visit, "redrive", [start(visit, job, problem), elsewhere(visit, job)])]
    : [back, whereLeft(visit, job)]
}

/** Renders the part of a job's page that changes while the job runs. */
export const progress = (visit: Visit, job: Job, problem?: Problem): Html => {
  const { ended, exported, kind, pace, purged, report, trouble } = job
  const by = stoppedBy(job)
  const stop = forThose(visit, roleOf[kind], form(visit, "stop", jobQuery(job), html`<button>Stop</button>`))
  return html`<p role="status" class="soft">
      ${stateOf(job)}${ended !== undefined &&
      html` in ${Delay.format(ended - job.begun)}, ${Format.ago(ended, visit.now)}`}
    </p>
    ${trouble !== undefined && alarm("The job failed.", trouble)}
    ${by !== undefined && alarm("The job stopped.", stops(job)[by])} ${failedOf(visit, job)}
    ${ended === undefined &&
    kind !== "plan" &&
    pace !== undefined &&
    html`<p class="soft">${waitOf(pace, kind === "edit" ? "After the copy" : "After each stage")}</p>`}
    ${report !== undefined && reportOf(job, report)} ${purged !== undefined && purgedOf(purged)}
    ${exported !== undefined && exportedOf(exported)} ${job.edited !== undefined && editedOf(job, job.edited)}
    ${ended === undefined ? stop : next(visit, job, problem)}`
}

/** Renders the page of one job. `problem` is a wrong field of its form. */
export const job = (visit: Visit, job: Job, problem?: Problem): Page => {
  const { begun, ended, id, kind, operator, place, selection } = job
  const isLive = ended === undefined
  return {
    title: `${names[kind]} ${id}`,
    isLive,
    body: html`${crumbs(visit, place, pageOf(job))}
      <h1>${names[kind]}: ${selection.title}</h1>
      <p class="soft">job <span class="mono">${id}</span>, by ${operator}, ${Format.ago(begun, visit.now)}</p>
      <div class="panel job" ${isLive && html` data-live="${visit.paths.to("liveJob", jobQuery(job))}"`}>
        ${progress(visit, job, problem)}
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
  <td class="n" data-label="count">
    ${number(each.purged?.removed ?? each.report?.redriven ?? each.exported?.written)}
  </td>
  <td data-label="by">${each.operator}</td>
  <td class="n" data-label="begun">${Format.ago(each.begun, visit.now)}</td>
</tr>`

/** Renders the page of all jobs of this process. */
export const jobs = (visit: Visit, all: ReadonlyArray<Job>): Page => ({
  title: "Jobs",
  isLive: all.some(({ ended }) => ended === undefined),
  body: html`<h1>Jobs</h1>
    ${all.length === 0
      ? html`<p class="soft">No jobs since this process began. The audit has the earlier jobs.</p>`
      : html`<table class="panel jobs">
          <thead>
            <tr>
              <th scope="col">job</th>
              <th scope="col">letters</th>
              <th scope="col">state</th>
              <th scope="col" class="n">count</th>
              <th scope="col">by</th>
              <th scope="col" class="n">begun</th>
            </tr>
          </thead>
          <tbody>
            ${all.map((each) => row(visit, each))}
          </tbody>
        </table>`}`
})
