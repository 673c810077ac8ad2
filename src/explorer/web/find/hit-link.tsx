import type { ComponentChildren } from 'preact'
import { type FoundHit, resourceOfHit } from '../../../core/search-answer.ts'
import type { Resource } from '../../../core/view.ts'
import { breadcrumbsOf } from '../listing/browse.ts'
import { addRecentSearch } from '../state/remembered.ts'
import { linkTo, previewedHit, route } from '../state/route.ts'

interface HitLinkProps {
  readonly uri: string
  readonly isOpen: boolean
  readonly isCode?: boolean
  readonly lang?: string | undefined
  /** Adds the resource to the basket, or removes it. */
  readonly onToggle: () => void
  readonly children: ComponentChildren
}

/** The link to a hit. The focus previews the hit; the space bar calls `onToggle`. */
export function HitLink({ uri, isOpen, isCode = false, lang, onToggle, children }: HitLinkProps) {
  return (
    <a
      class={isCode ? 'hit-link mono' : 'hit-link'}
      href={linkTo({ uri })}
      aria-current={isOpen ? 'true' : undefined}
      lang={lang}
      onFocus={() => {
        previewedHit.value = uri
      }}
      onClick={chosen}
      onKeyDown={(event) => {
        if (event.key !== ' ') return
        event.preventDefault()
        onToggle()
      }}
    >
      <bdi>{children}</bdi>
    </a>
  )
}

/** Ends the preview, because the hit is opened, and adds the query to the recent searches. */
function chosen(): void {
  previewedHit.value = undefined
  addRecentSearch(route.value.q ?? '')
}

export function documentResource(hit: FoundHit): Resource {
  return resourceOfHit(hit, hit.document, lastBreadcrumbLabel(hit.document))
}

export function lastBreadcrumbLabel(uri: string): string {
  return breadcrumbsOf(uri).at(-1)?.label ?? uri
}
