/** The conformance suite and further cases: the SQS adapter on a simulated SQS. */
import { Cases, Suite } from "@requeue/conformance"
import { afterAll, describe, test } from "vitest"
import { cases as own } from "./cases.ts"
import { layer } from "./harness.ts"

Suite.register(
  { describe, test, afterAll },
  { name: "sqs, simulated", layer: layer(), virtualTime: true, cases: [...Cases.cases, ...own] }
)
