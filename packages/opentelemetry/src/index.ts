/** OpenTelemetry for Requeue: see {@link OpenTelemetry}. */
export * as OpenTelemetry from "./OpenTelemetry.ts"
