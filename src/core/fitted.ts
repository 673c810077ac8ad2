type Arguments = Readonly<Record<string, unknown>>

interface FittingSchema {
  readonly type?: unknown
  readonly properties?: Readonly<Record<string, FittingSchema>>
  readonly required?: readonly string[]
  readonly items?: FittingSchema
  readonly anyOf?: readonly FittingSchema[]
}

/**
 * Fits arguments to the schema of their tool. Removes null and empty texts of optional arguments, because a host in strict mode must fill
 * in every argument. Converts texts to the numbers and booleans of the schema, because models write these as texts.
 */
export function fitArguments(args: Arguments, schema: Arguments): Arguments {
  return fittedObject(args, schema as FittingSchema)
}

const isEmpty = (value: unknown) => value === null || value === ''

function fittedObject(args: Arguments, { properties = {}, required = [] }: FittingSchema): Arguments {
  const present = Object.entries(args).filter(([name, value]) => !isEmpty(value) || required.includes(name))
  return Object.fromEntries(
    present.map(([name, value]) => [
      name,
      fittedValue(value, Object.hasOwn(properties, name) ? properties[name] : undefined),
    ]),
  )
}

function fittedValue(value: unknown, schema: FittingSchema = {}): unknown {
  const { type, items } = schema
  if (Array.isArray(value)) return value.map((item) => fittedValue(item, items))
  if (typeof value === 'object' && value !== null) {
    const object = schema.properties === undefined ? schema.anyOf?.find(({ properties }) => properties) : schema
    return object === undefined ? value : fittedObject(value as Arguments, object)
  }
  if (typeof value !== 'string') return value
  if ((type === 'integer' || type === 'number') && /^\s*-?\d{1,15}(?:\.\d{1,15})?\s*$/.test(value)) return Number(value)
  if (type === 'boolean' && /^(?:true|false)$/i.test(value)) return value.toLowerCase() === 'true'
  return value
}
