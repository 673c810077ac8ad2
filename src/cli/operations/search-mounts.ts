import { iteratePages } from '../../core/kit/groups.ts'
import { findSearchMounts, type SearchMount } from '../../core/search-answer.ts'
import type { View } from '../../core/view.ts'
import { withSuggestion } from './source.ts'

export async function searchMountsOf(view: View): Promise<readonly SearchMount[]> {
  const all: SearchMount[] = []
  for await (const { items } of iteratePages((query) => view.templates(query))) all.push(...findSearchMounts(items))
  return all
}

/** Returns an empty text if the content is not text. */
export async function readResourceText(view: View, uri: string): Promise<string> {
  const [content] = (await withSuggestion(uri, view.read(uri))).contents
  return content !== undefined && 'text' in content ? content.text : ''
}
