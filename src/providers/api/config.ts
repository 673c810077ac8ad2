import { invalid, isResourceError } from '../../core/errors.ts'
import { defined } from '../../core/kit/object.ts'
import * as z from '../../schema/builder.ts'
import { duration, secret, text } from '../../schema/fields.ts'
import { createRefuser, refusal } from '../../schema/refusals.ts'
import {
  documentsShape,
  httpUrl,
  secretEffects,
  serviceEffects,
  webAccessEffectRules,
  webAccessShape,
  withoutEffects,
} from '../../schema/shapes.ts'
import { refuseInTheClear, resolveSecret, type SecretSource } from '../../schema/values.ts'
import { secretNameStrength } from '../../secrets/keys.ts'
import { parsePointer } from '../settings/tree.ts'
import { defineSourceSchema, type OpenSource } from '../source.ts'
import { descriptionShape, originOptions } from '../web/config.ts'
import { compileRoute, type RouteOptions } from './route.ts'

const pointer = z.string().refine(isPointer, {
  error: refusal('This is not a JSON pointer.', 'Write one such as "/data/items"; "" is the whole.'),
})

function isPointer(value: string): boolean {
  try {
    return parsePointer(value).length >= 0
  } catch {
    return false
  }
}

const list = z.strictObject({
  from: text.describe('The path of the list below "url", such as "users?per_page=100".'),
  items: pointer.optionalKey('JSON pointer to the array in the answer. By default the answer is the array.'),
  values: z
    .record(z.string(), pointer)
    .optionalKey('JSON pointers in an item to the value of each variable. By default "/id", if there is one variable.'),
  title: pointer.optionalKey('JSON pointer in an item to its title.'),
  description: pointer.optionalKey('JSON pointer in an item to its description.'),
  modified: pointer.optionalKey('JSON pointer in an item to the time of its last change.'),
  next: z
    .union(
      [
        z.literal('link'),
        z.strictObject({
          cursor: pointer.describe('JSON pointer in the answer to the cursor of the next page.'),
          param: text.describe('The query parameter of the cursor.'),
        }),
        z.strictObject({
          page: text.describe(
            'The query parameter with the number of the page. The request for the first page does not have it.',
          ),
          from: z.int().min(0).optionalKey('The number of the first page. By default 1.'),
        }),
      ],
      {
        error: refusal(
          'This is not a way to find the next page.',
          'Write "link", { "cursor": "/next", "param": "cursor" } or { "page": "page" }.',
        ),
      },
    )
    .optionalKey('How the next page is found: by the header Link, a cursor or a number. By default there is one page.'),
})

const route = z
  .strictObject({
    template: text.describe('A URI template that is relative to the address, such as "users/{id}" or "search{?q}".'),
    to: text.optionalKey(
      'The URL template of the request below "url", with the same variables. By default the same as `template`.',
    ),
    ...descriptionShape,
    list: list.optionalKey('How resources of the route are listed. By default they are not.'),
  })
  .superRefine((mountOptions, context) => {
    try {
      compileRoute(mountOptions as RouteOptions)
    } catch (error) {
      if (!isResourceError(error)) throw error
      const fix = 'Write one such as { "template": "users/{id}", "list": { "from": "users" } }.'
      createRefuser(context)('template', error.message, fix)
    }
  })

/** Headers that a configuration must not set. */
const managed =
  /^(?:host|connection|content-.*|transfer-encoding|te|trailer|upgrade|expect|keep-alive|accept-encoding|via|forwarded|x-forwarded-.*|proxy-.*|if-.*|range)$/i

const headers = z.record(z.string(), z.union([text, secret])).superRefine((mountOptions, context) => {
  for (const [name, value] of Object.entries(mountOptions)) {
    const refuse = (message: string, fix: string) => createRefuser(context)(name, message, fix)
    if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name))
      refuse('This is not the name of a header.', 'Write one such as "X-Api-Key".')
    else if (managed.test(name)) refuse('A configuration cannot set this header.', 'Remove it.')
    else if (typeof value !== 'string') continue
    else if (/[^\x20-\x7e]/.test(value))
      refuse('A header may hold only printable ASCII characters.', 'Remove the others.')
    else if (secretNameStrength(name) !== undefined || /^x-.*key$/i.test(name))
      refuse(
        'This is a literal secret.',
        'Put it into the environment or a file, and write { "env": "NAME" } or { "file": "path" }.',
      )
  }
})

const apiShape = {
  url: httpUrl.describe('The URL of the API, such as "https://api.example.org/v2".'),
  routes: z
    .array(route)
    .min(1)
    .describe('The parts of the API that are served. If several routes match a path, the first one applies.'),
  bearer: secret.optionalKey(
    'The token for the header Authorization: Bearer, as { "env": "NAME" } or { "file": "path" }.',
  ),
  headers: headers.optionalKey(
    'Headers of every request to this origin; other origins do not get them. A secret value is { "env": "NAME" } or { "file": "path" }.',
  ),
  ...webAccessShape,
  types: webAccessShape.types.describe('The media types that are served, as globs. By default JSON.'),
  keep: duration.optionalKey('How long a listing is cached. By default "10s".'),
  maxEntries: z.int().min(1).max(100_000).optionalKey('Maximum number of listed entries of a route. By default 10000.'),
  redact: documentsShape.redact,
}

export const source = defineSourceSchema({
  about: 'An API that answers with JSON.',
  shape: apiShape,
  effects: {
    options: {
      ...webAccessEffectRules,
      url: serviceEffects,
      bearer: secretEffects,
      headers: secretEffects,
      ...withoutEffects('routes keep maxEntries redact'),
    },
  },
})

export const open: OpenSource<typeof source> = async (options, { folder, log, redaction }) => {
  const { url, routes, bearer, keep, maxEntries, poll, redact = 'off', insecure } = options
  const secrets = new Map<string, string>()
  const plain: Record<string, string> = {}
  for (const [name, value] of Object.entries(options.headers ?? {}))
    if (typeof value === 'string') plain[name] = value
    else secrets.set(name, await headerSecret(`headers.${name}`, value, folder))
  const token = bearer === undefined ? undefined : await headerSecret('bearer', bearer, folder)
  const secretTexts = [...secrets.values(), ...(token === undefined ? [] : [token])]
  if (secretTexts.length > 0) refuseInTheClear(url, insecure)
  const [{ api }, { sliced }] = await Promise.all([import('./index.ts'), import('../../wrap/sliced.ts')])
  const provider = api({
    ...originOptions(options),
    url,
    routes: routes as readonly RouteOptions[],
    headers: {
      ...plain,
      ...Object.fromEntries(secrets),
      ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
    },
    secrets: secretTexts,
    ...defined({ keepMs: keep, maxEntries, poll }),
    log,
  })
  if (redact === 'off') return sliced(provider)
  const { redacted } = await import('../../wrap/redacted.ts')
  return sliced(redacted(provider, { ...(await redaction()), mode: redact }))
}

/** @throws ResourceError `invalid` if the secret is missing, or if no header can hold it. */
async function headerSecret(key: string, source: SecretSource, folder: string): Promise<string> {
  const secret = await resolveSecret(source, { folder })
  if ('message' in secret) throw invalid(`"${key}" has no value. ${secret.message} ${secret.fix}`, 'configuration')
  if (/[^\x20-\x7e\x80-\xff]/.test(secret.value))
    throw invalid(
      `"${key}" contains a line end or another character that a header must not contain. Remove it from the secret.`,
      'configuration',
    )
  return secret.value
}
