/** A new file for each round. */
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as SqliteBroker from "@requeue/adapter-sqlite/SqliteBroker"
import { connect } from "@requeue/core/promise"
import type { Workload } from "../../Contender.ts"
import type { Scaling } from "../jobs.ts"
import * as PromiseFace from "../promiseFace.ts"

const inFolder =
  (workload: "roundTrips" | "sends"): Workload<Scaling> =>
  async (job, meter) => {
    const folder = await mkdtemp(join(tmpdir(), "requeue-bench-sqlite-"))
    const url = `sqlite:${join(folder, "queue.db")}`
    await PromiseFace.scaling(() => connect(SqliteBroker.layer({ url })))[workload](job, meter)
    await rm(folder, { recursive: true })
  }

export const roundTrips = inFolder("roundTrips")

export const sends = inFolder("sends")
