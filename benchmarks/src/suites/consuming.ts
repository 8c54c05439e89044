/** What it costs to take everything from a queue: with much in progress and with little, as bytes and as JSON. */
import type { Entries, Job } from "../Contender.ts"
import type { Suite } from "../Suite.ts"

export const consuming =
  (
    contenders: { readonly bytes: Entries; readonly json: Entries },
    /** For so many messages that may be in progress: how the case names them, and what its workloads are told. */
    window: (messages: number) => { readonly name: string; readonly job: Job }
  ): Suite["cases"] =>
  (size) =>
    [100, 10].map(window).flatMap(({ job, name }) =>
      [
        { name: `bytes, ${name}`, entries: contenders.bytes },
        { name: `JSON, ${name}`, entries: contenders.json }
      ].map((one) => ({ ...one, messages: size(50_000), warmUp: size(10_000), job: { ...job, filled: true } }))
    )
