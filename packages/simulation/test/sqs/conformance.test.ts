/** The conformance suite and further cases: the SQS adapter on a simulated SQS. */
import { Cases, Suite } from "@requeue/conformance"
import { afterAll, describe, test } from "vitest"
import { besideMemory } from "../besideMemory.ts"
import { cases as own } from "./cases.ts"
import { layer } from "./harness.ts"

const runner = { describe, test, afterAll }
const options = { name: "sqs, simulated", layer: layer(), virtualTime: true }
Suite.register(runner, { ...options, cases: [...Cases.cases, ...own] })
Suite.register(runner, besideMemory(options))
