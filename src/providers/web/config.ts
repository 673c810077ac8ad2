import { invalid } from '../../core/errors.ts'
import { isHttpUrl } from '../../core/http-url.ts'
import { defined } from '../../core/kit/object.ts'
import { parseAddress } from '../../core/uri.ts'
import * as z from '../../schema/builder.ts'
import { globs, text } from '../../schema/fields.ts'
import { createRefuser, refusal } from '../../schema/refusals.ts'
import {
  documentEffectRules,
  documentsShape,
  httpUrl,
  serviceEffects,
  webAccessEffectRules,
  webAccessShape,
  withoutEffects,
} from '../../schema/shapes.ts'
import { defineSourceSchema, type OpenSource, type OptionsOf } from '../source.ts'

const path = z.string().regex(/^(?!\/)(?!.*\/$)[^?#]*$/, {
  error: refusal(
    'This is not the path of a page.',
    'Write one such as "docs/intro", without a slash at either end or a query; "" is the address itself.',
  ),
})

export const descriptionShape = {
  title: text.optionalKey('The title, for people.'),
  description: text.optionalKey('A description, for people and models.'),
  mimeType: text
    .regex(/^[\w!#$&^.+-]+\/[\w!#$&^.+-]+$/, {
      error: refusal('This is not a media type.', 'Write one such as "text/markdown".'),
    })
    .optionalKey('The media type, such as "text/markdown".'),
  priority: z.number().min(0).max(1).optionalKey('The importance, from 0 to 1.'),
  audience: z.array(z.enum(['user', 'assistant'])).optionalKey('The audience: people, models or both.'),
}

const webShape = {
  url: httpUrl.optionalKey('The URL of the pages. By default the address of the mount, if it is an http or https URL.'),
  pages: z
    .array(
      z.union(
        [path, z.strictObject({ path: path.describe('The path of the page below the address.'), ...descriptionShape })],
        {
          error: refusal(
            'This is not a page.',
            'Write its path, such as "docs/intro", or { "path": "docs/intro", "title": "Introduction" }.',
          ),
        },
      ),
    )
    .optionalKey('The pages that are listed, by their paths below the address. "" is the address itself.'),
  llms: path.optionalKey(
    'The path of an llms.txt below the address, such as "llms.txt". The pages below the address that it names are listed and can be read. By default none.',
  ),
  match: globs.optionalKey('Other pages that may be read, by globs of their paths. By default none.'),
  fetch: z
    .boolean()
    .optionalKey(
      'Reads pages through this server. false: pages are only listed, and clients fetch them themselves. By default true.',
    ),
  ...webAccessShape,
  types: webAccessShape.types.describe(
    'The media types that are served, as globs. By default text, JSON, XML, YAML, JavaScript, images, PDF, EPUB, and documents of Office (OOXML) and OpenDocument.',
  ),
  ...documentsShape,
}

function checkWeb({ pages = [], match, llms }: OptionsOf<typeof webShape>, context: z.RefinementCtx): void {
  if (pages.length > 0 || match !== undefined || llms !== undefined) return
  const fix = 'Add "pages": ["docs/intro"], "match": "docs/**" or "llms": "llms.txt".'
  createRefuser(context)('pages', 'The mount has none of "pages", "match" and "llms", so it serves no page.', fix)
}

const noUrl = 'The mount needs "url", because its address is not an http or https URL.'

export const source = defineSourceSchema({
  about: 'Pages of the web.',
  shape: webShape,
  check: checkWeb,
  effects: {
    always: ({ url }, { address }) => serviceEffects(url ?? address),
    options: {
      ...documentEffectRules,
      ...webAccessEffectRules,
      ...withoutEffects('url pages llms match fetch'),
    },
  },
  findings: (options, { address }) => {
    if ('url' in options || isHttpUrl(address)) return []
    const fix = 'Add "url": "https://www.example.org/docs", or make that the address.'
    return [{ path: ['mounts', address], message: noUrl, fix }]
  },
})

export function originOptions(options: OptionsOf<typeof webAccessShape>) {
  const { redirects, allowAddresses, insecure, types, maxBytes, timeout } = options
  return defined({ redirects, allowAddresses, insecure, types, maxBytes, timeoutMs: timeout })
}

export const open: OpenSource<typeof source> = async (options, { address, documents }) => {
  const { pages = [], llms, match, fetch, poll } = options
  const url = options.url ?? parseAddress(address).text
  if (!isHttpUrl(url)) throw invalid(noUrl, 'configuration')
  if (poll !== undefined && ((pages.length === 0 && llms === undefined) || fetch === false))
    throw invalid('There are no pages to poll: "pages" is empty, or "fetch" is false. Remove "poll".', 'configuration')
  const { web } = await import('./index.ts')
  const provider = web({
    ...originOptions(options),
    url,
    pages: pages.map((page) => (typeof page === 'string' ? { path: page } : page)),
    ...(match === undefined ? {} : { match: [match].flat() }),
    ...defined({ llms, fetch, poll }),
  })
  return documents(provider)
}
