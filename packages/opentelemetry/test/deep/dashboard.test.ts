/** Every expression of the dashboard finds what was really exported, as Prometheus evaluates it. */
import { readFileSync } from "node:fs"
import { promtool as find, Unavailable } from "@requeue/brokers"
import { assert, describe, test } from "vitest"
import * as Promtool from "./alerts/promtool.ts"
import * as Samples from "./alerts/samples.ts"
import { scenarios, scrapesOf } from "./alerts/scenarios.ts"

interface Target {
  readonly expr: string
  readonly legendFormat: string
}

interface Dashboard {
  readonly templating: { readonly list: ReadonlyArray<{ readonly name: string; readonly definition?: string }> }
  readonly panels: ReadonlyArray<{ readonly title: string; readonly targets?: ReadonlyArray<Target> }>
}

const file = new URL("../../grafana/requeue.json", import.meta.url)
const dashboard: Dashboard = JSON.parse(readFileSync(file, "utf8"))
const targets = dashboard.panels.flatMap((panel) => panel.targets ?? [])
const variables = dashboard.templating.list

const promtool = await find().catch((cause: unknown) => {
  if (cause instanceof Unavailable) return cause
  throw cause
})

/** The outages that leave a trace in every panel. */
const outages = [
  "the shop is closed for longer than the policy bears",
  "leases are lost",
  "the connection is lost",
  "the broker takes no retries"
]

const seriesOf = async (way: Samples.Way): Promise<ReadonlyArray<Samples.Series>> => {
  const chosen = scenarios.filter(({ name }) => outages.includes(name))
  const all = await Promise.all(chosen.map(async (scenario) => Samples.seriesOf(await scrapesOf(scenario), way)))
  return all.flatMap((one, index) =>
    one.map(({ series, values }) => ({ series: series.replace('instance="', `instance="${index} `), values }))
  )
}

/** What Grafana makes of an expression where all is chosen. */
const filled = (expr: string): string => expr.replaceAll("$__rate_interval", "5m").replaceAll(/\$(job|queue)\b/g, ".*")

/** The names of labels in an expression, and in its legend. */
const labelsIn = ({ expr, legendFormat }: Target): ReadonlyArray<string> => [
  ...[...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, names = ""]) => names.split(/, */)),
  ...[...expr.matchAll(/(\w+)(?:=~|!~|!=|=)"/g)].map(([, name = ""]) => name),
  ...[...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, name = ""]) => name)
]

describe.skipIf(promtool instanceof Unavailable)("the dashboard", () => {
  for (const way of ["exporter", "collector"] as const) {
    test(`has data in every panel, by way of the ${way}`, async () => {
      // A histogram without records answers NaN, which is no data.
      const expectations = targets.map(({ expr }) => ({
        expr: `count((${filled(expr)}) >= 0) > bool 0`,
        minute: 14,
        samples: [{ labels: "{}", value: 1 }]
      }))
      const rules = readFileSync(Promtool.rulesFile, "utf8")
      assert.strictEqual(await Promtool.complaints(String(promtool), rules, await seriesOf(way), expectations), "")
      const misspelt = expectations.map((each) => ({
        ...each,
        expr: each.expr.replaceAll(/(requeue|messaging)_(?=\w+[{(])/g, "$1d_")
      }))
      const found = await Promtool.complaints(String(promtool), rules, await seriesOf(way), misspelt)
      assert.strictEqual(found.match(/got: nil/g)?.length, targets.length)
    })
  }

  test("names only labels that are exported", async () => {
    const exported = new Set(["__name__", "le"])
    for (const { series } of await seriesOf("exporter")) {
      for (const [, name = ""] of series.matchAll(/(\w+)="/g)) exported.add(name)
    }
    const unknown = targets.flatMap((target) => labelsIn(target).filter((name) => !exported.has(name)))
    assert.deepStrictEqual(unknown, [])
    for (const { definition = "" } of variables) {
      const [, metric = "", label = ""] = /^label_values\((\w+)(?:\{.*\})?, (\w+)\)$/.exec(definition) ?? []
      if (definition !== "") assert.isTrue(exported.has(label) && metric === "requeue_consumers", definition)
    }
  })
})

test("the dashboard uses no variable that it does not have", () => {
  const used = [...readFileSync(file, "utf8").matchAll(/\$\{?(?!__)(\w+)/g)].map(([, name = ""]) => name)
  assert.deepStrictEqual([...new Set(used)].toSorted(), variables.map(({ name }) => name).toSorted())
})
