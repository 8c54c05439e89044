/** Reads a history once, and returns all lives in it. */
import type { Delivery, History } from "../../History.ts"
import type { Scenario } from "../../Scenario.ts"
import { attempting } from "./attempting.ts"
import type { Lives, Run } from "./Lives.ts"
import * as Registry from "./registry.ts"
import { storing } from "./storing.ts"

/**
 * The lives of a history.
 * Long, because each kind of fact has its line.
 */
export const readLives = (scenario: Scenario, history: History): Lives => {
  const registry = Registry.make(scenario)
  const { attempts, copies, copyOf, deliveries, handOut, keyOf, keys, processes, processOf } = registry
  const work = new Set<string>()
  const { back, store } = storing(registry, work)
  const { answer, arrive, ask, enlist, turn } = attempting(registry)
  const runs: Array<Run> = []
  const byNumber = new Map<number, Run>()
  const lose = (index: number, lost: ReadonlyArray<Delivery>): void => {
    for (const each of lost) {
      const life = deliveries.get(each)
      if (life !== undefined && life.disconnected < 0) life.disconnected = index
    }
  }
  const fail = (site: string): void => {
    const [, name = "", call] = site.split(" ")
    const process = processes.get(name)
    if (process !== undefined && call === "hide") process.extendsLate = true
  }
  let calm: Lives["calm"]
  let end: Lives["end"]

  // Long, because each kind of fact has its line.
  history.forEach((entry, index) => {
    switch (entry._tag) {
      case "Sending":
        work.add(entry.queue)
        keyOf(entry.key).sending = { index, entry }
        return
      case "Sent":
        keyOf(entry.key).sent = { index, entry }
        return
      case "Stored":
        return store({ index, entry })
      case "HandedOut":
        return void handOut(copyOf(entry.copy, entry.key), processOf(entry.process), entry.delivery, { index, entry })
      case "Back":
        return back({ index, entry })
      case "Gone":
        copyOf(entry.copy, entry.key).gone = { index, entry }
        return
      case "Started": {
        const process = processOf(entry.process)
        process.started = { index, entry }
        process.version = scenario.versions[entry.version]
        return
      }
      case "Draining":
        processOf(entry.process).draining ??= { index, entry }
        return
      case "Drained":
        processOf(entry.process).drained = { index, entry }
        return
      case "Killed":
        processOf(entry.process).killed ??= { index, entry }
        return
      case "Frozen":
        return void processOf(entry.process).frozen.push({ index, entry })
      case "Fault":
        return fail(entry.site)
      case "Credit":
        return void processOf(entry.process).credits.push({ index, entry })
      case "Arrived":
        return arrive({ index, entry })
      case "Reconnected":
        return lose(index, entry.gone)
      case "Lapsed":
        return lose(index, [entry.delivery])
      case "Began": {
        const run: Run = { process: processOf(entry.process), began: { index, entry }, ended: undefined, calls: [] }
        runs.push(run)
        byNumber.set(entry.run, run)
        run.process.runs.push(run)
        for (const given of entry.given) turn(run, given)
        return
      }
      case "Enlisted":
        return enlist({ index, entry })
      case "Called":
        return void byNumber.get(entry.run)?.calls.push({ index, at: entry.at, call: entry.call })
      case "Ended": {
        const run = byNumber.get(entry.run)
        if (run !== undefined) run.ended ??= { index, entry }
        return
      }
      case "Asked":
        return ask(index, entry)
      case "Answered":
        return answer(index, entry)
      case "Pulling":
        return void processOf(entry.process).pulls.push({ index, entry })
      case "Pulled":
        return void processOf(entry.process).pulls.push({ index, entry })
      case "Told":
        return void processOf(entry.process).told.push({ index, entry })
      case "Calm":
        calm = { index, entry }
        return
      case "End":
        end = { index, entry }
        return
      case "Committed":
      case "Rebooted":
      case "NotSent":
      case "Health":
      case "Operates":
      case "Operated":
      case "Defect":
    }
  })

  return { scenario, history, work, keys, copies, deliveries, processes, runs, attempts, calm, end }
}
