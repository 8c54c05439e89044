/** Each alert rule fires in an outage, and none when all is well, as Prometheus's own tool evaluates them. */
import { readFileSync } from "node:fs"
import { promtool as find, Unavailable } from "@requeue/brokers"
import { assert, describe, test } from "vitest"
import * as Promtool from "./alerts/promtool.ts"
import * as Samples from "./alerts/samples.ts"
import { type Scenario, scenarios, scrapesOf } from "./alerts/scenarios.ts"

const promtool = await find().catch((cause: unknown) => {
  if (cause instanceof Unavailable) return cause
  throw cause
})

/** The alerts, each as the text of its rule. */
const alertsOf = (text: string): ReadonlyMap<string, string> =>
  new Map([...text.matchAll(/^ +- alert: (\w+)\n(?: {8}.*\n)+/gm)].map(([rule, name = ""]) => [name, rule]))

const rules = readFileSync(Promtool.rulesFile, "utf8")
const quiet = Array.from({ length: 10 }, (_, index) => Promtool.firing(index + 1, []))

const complaintsOf = async (scenario: Scenario, way: Samples.Way, changed = rules): Promise<string> => {
  const expected = Object.entries(scenario.fires).map(([minute, alerts]) => Promtool.firing(Number(minute), alerts))
  const series = Samples.seriesOf(await scrapesOf(scenario), way)
  return Promtool.complaints(String(promtool), changed, series, [...quiet, ...expected])
}

describe.skipIf(promtool instanceof Unavailable)("the alert rules", () => {
  for (const scenario of scenarios) {
    test(`know when ${scenario.name}`, async () => {
      assert.strictEqual(await complaintsOf(scenario, "exporter"), "")
      assert.strictEqual(await complaintsOf(scenario, "collector"), "")
    })
  }

  const alerts = alertsOf(rules)

  test("each is fired by an outage", () => {
    const fired = scenarios.flatMap(({ fires }) => Object.values(fires).flat())
    assert.deepStrictEqual([...new Set(fired)].toSorted(), [...alerts.keys()].toSorted())
  })

  test("one that names what is not exported is found", async () => {
    for (const [name, rule] of alerts) {
      const scenario = scenarios.find(({ fires }) => Object.values(fires).some((fired) => fired.includes(name)))!
      const scrapes = await scrapesOf(scenario)
      const exported = scrapes.flatMap((scrape = "") =>
        [...scrape.matchAll(/^# TYPE (\w+)/gm)].map(([, metric]) => metric)
      )
      const metrics = new RegExp(`\\b(?=${[...new Set(exported)].join("|")})`, "g")
      const misspelt = rules.replace(rule, () => rule.replaceAll(metrics, "x"))
      assert.include(await complaintsOf(scenario, "exporter", misspelt), name)
    }
  })

  test("one that fires when all is well is found", async () => {
    const eager = rules.replaceAll(/ > 0$/gm, " >= 0").replace(" == 0", " == 1")
    const found = await complaintsOf(scenarios[0]!, "exporter", eager)
    const eagerly = [...alerts.keys()].filter((name) => found.includes(name))
    assert.deepStrictEqual(eagerly, [
      "RequeueHandlersPaused",
      "RequeueNotConnected",
      "RequeueBrokerTrouble",
      "RequeueQuarantine",
      "RequeueQueueDown",
      "RequeueStalled",
      "RequeuePausedByHand"
    ])
  })
})
