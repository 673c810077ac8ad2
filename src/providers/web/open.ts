import { invalid } from '../../core/errors.ts'
import { isHttpUrl } from '../../core/http-url.ts'
import { defined } from '../../core/kit/defined.ts'
import { parseAddress } from '../../core/uri.ts'
import { originOptions } from '../http/mount.ts'
import type { OpenSource } from '../source.ts'
import { noUrl, type source } from './config.ts'

/** Opens the pages that a mount names, as documents. */
export const open: OpenSource<typeof source> = async (options, { address, documents }) => {
  const { pages = [], llms, match, fetch, poll } = options
  const url = options.url ?? parseAddress(address).text
  if (!isHttpUrl(url)) throw invalid(noUrl, 'url')
  if (poll !== undefined && ((pages.length === 0 && llms === undefined) || fetch === false))
    throw invalid('There are no pages to look at: "pages" is empty, or "fetch" is false. Remove "poll".', 'poll')
  const { web } = await import('./index.ts')
  const opened = web({
    ...originOptions(options),
    url,
    pages: pages.map((page) => (typeof page === 'string' ? { path: page } : page)),
    ...(match === undefined ? {} : { match: [match].flat() }),
    ...defined({ llms, fetch, poll }),
  })
  return documents(opened)
}
