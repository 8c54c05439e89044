/** The process of one round: runs its parent's job, and answers with its measurements. */
import type { Job, Workload } from "./Contender.ts"
import * as Meter from "./Meter.ts"

export interface Task {
  readonly contender: string
  readonly workload: string
  readonly warmUp: number
  readonly messages: number
  readonly job: Job
  /** Server processes to measure as well. */
  readonly servers: ReadonlyArray<number>
}

export type Answer = { readonly reading: Meter.Reading } | { readonly error: string }

const perform = async ({ contender, job, messages, servers, warmUp, workload }: Task): Promise<Answer> => {
  const library = (await import(`./contenders/${contender}.js`)) as Readonly<Record<string, Workload>>
  const run = library[workload]
  if (run === undefined) throw new Error(`contenders/${contender} has no workload ${workload}`)
  const { meter, reading } = Meter.make({ warmUp, messages, servers })
  await run(job, meter)
  return { reading: reading() }
}

process.once("message", (task: Task) => {
  perform(task)
    .catch((error: unknown) => ({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) }))
    .then((answer) => process.send?.(answer, undefined, {}, () => process.exit(0)))
    .catch(() => process.exit(1))
})
