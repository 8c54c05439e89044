/** Asks Prometheus's own test of rules what fires. */
import { execFile } from "node:child_process"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { interval, type Series } from "./samples.ts"

/** The rules that the package has. */
export const rulesFile = fileURLToPath(new URL("../../../prometheus/requeue.rules.yaml", import.meta.url))

/** A question, and the whole answer to it. */
export interface Expectation {
  readonly expr: string
  readonly minute: number
  readonly samples: ReadonlyArray<{ readonly labels: string; readonly value: number }>
}

/** Exactly these alerts fire in this minute. */
export const firing = (minute: number, alerts: ReadonlyArray<string>): Expectation => ({
  expr: 'group by (alertname) (ALERTS{alertstate="firing"})',
  minute,
  samples: alerts.map((name) => ({ labels: `{alertname="${name}"}`, value: 1 }))
})

/** Answers what `promtool` has against them; empty when all hold. */
export const complaints = async (
  promtool: string,
  rules: string,
  series: ReadonlyArray<Series>,
  expectations: ReadonlyArray<Expectation>
): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), "requeue-rules-"))
  try {
    const test = {
      rule_files: ["rules.yaml"],
      evaluation_interval: `${interval}s`,
      tests: [
        {
          interval: `${interval}s`,
          input_series: series,
          promql_expr_test: expectations.map(({ expr, minute, samples }) => ({
            expr,
            eval_time: `${minute}m`,
            exp_samples: samples
          }))
        }
      ]
    }
    await writeFile(join(folder, "rules.yaml"), rules)
    await writeFile(join(folder, "test.yaml"), JSON.stringify(test))
    return await new Promise((resolve) => {
      execFile(promtool, ["test", "rules", "test.yaml"], { cwd: folder, maxBuffer: 1 << 26 }, (error, out, err) => {
        resolve(error === null ? "" : `${out}${err}` || error.message)
      })
    })
  } finally {
    await rm(folder, { recursive: true })
  }
}
