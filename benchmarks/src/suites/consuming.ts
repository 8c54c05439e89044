/** The cost of taking everything from a queue, as bytes and as JSON. */
import type { Entries, Job } from "../Contender.ts"
import type { Case } from "../Suite.ts"

export interface Contenders {
  readonly bytes: Entries
  readonly json: Entries
}

/** The messages in progress: their name in the cases, their settings, and the amount of work. */
export interface Window {
  readonly name: string
  readonly job: Job
  readonly messages: number
  readonly warmUp: number
}

export const consuming = (contenders: Contenders, { job, messages, name, warmUp }: Window): ReadonlyArray<Case> =>
  [
    { name: `bytes, ${name}`, entries: contenders.bytes },
    { name: `JSON, ${name}`, entries: contenders.json }
  ].map((one) => ({ ...one, messages, warmUp, job: { ...job, filled: true } }))
