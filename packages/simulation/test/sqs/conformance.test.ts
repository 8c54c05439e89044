/** The conformance suite: the SQS adapter on a simulated SQS. */
import { Suite } from "@requeue/conformance"
import { afterAll, describe, test } from "vitest"
import { layer } from "./harness.ts"

Suite.register({ describe, test, afterAll }, { name: "sqs, simulated", layer: layer(), virtualTime: true })
