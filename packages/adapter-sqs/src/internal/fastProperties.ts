/**
 * Makes an object cheap to copy. V8 stores an incrementally built object as a hash table: copying the SDK's
 * configuration with 46 properties takes 10 microseconds, but 1 once the object has fast properties. V8 converts it
 * when an object that inherits from it is enumerated. The object's behaviour does not change, on any engine.
 */
export const makeFast = (object: object): void => {
  for (const _ in Object.create(object)) break
}
