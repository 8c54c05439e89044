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

  // As Prometheus has it when it was away, and when it could not reach the process.
  for (const mark of ["_", "stale"]) {
    test(`are silent behind a gap in the data: ${mark}`, async () => {
      const over = scenarios.filter(({ fires }) => Object.entries(fires).at(-1)![1].length === 0)
      assert.isAbove(over.length, 8)
      const expected = [88, 89, 90].map((minute) => Promtool.firing(minute, []))
      for (const scenario of over) {
        const series = Samples.withGap(Samples.seriesOf(await scrapesOf(scenario)), 76, 87, mark)
        assert.strictEqual(await Promtool.complaints(String(promtool), rules, series, expected), "", scenario.name)
      }
    })
  }

  test("know what came in a gap of the data, and after a counter has begun anew", async () => {
    const labels = 'job="shop",instance="a",messaging_system_name="nsq",messaging_destination_name="q"'
    const of = (name: string, more: string, before: number, after: number): Samples.Series => {
      const values = [...Array.from({ length: 160 }, () => before), ...Array.from({ length: 200 }, () => after)]
      return { series: `${name}{${labels},${more}}`, values: values.join(" ") }
    }
    const counters = (before: number, after: number) => [
      of(
        "requeue_settlements_total",
        'requeue_settlement="dead_letter",requeue_dead_letter_reason="permanent"',
        before,
        after
      ),
      of("messaging_client_sent_messages_total", 'error_type="Timeout"', before, after),
      of("requeue_lease_losses_total", 'x=""', before, after)
    ]
    const all = ["RequeueLeasesLost", "RequeueMessagesGivenUp", "RequeueSendsFail"]
    for (const [before, after, fired] of [
      [5, 5, []],
      [5, 6, all],
      [5, 1, all]
    ] as const) {
      const series = Samples.withGap(counters(before, after), 30, 50, "_")
      const expected = [Promtool.firing(51, fired), Promtool.firing(62, [])]
      assert.strictEqual(
        await Promtool.complaints(String(promtool), rules, series, expected),
        "",
        `${before}, ${after}`
      )
    }
  })

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
