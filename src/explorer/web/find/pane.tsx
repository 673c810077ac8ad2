import './find.css'
import { useEffect } from 'preact/hooks'
import { place } from '../state/place.ts'
import { loadTemplates, templates } from '../state/templates.ts'
import { PromptsPane } from './prompts-pane.tsx'
import { SearchPane } from './search-pane.tsx'
import { TemplatesPane } from './templates-pane.tsx'

/** The results of a search, or the templates and the form for one. */
export function FindPane() {
  useEffect(() => {
    if (templates.value.state !== 'loaded') void loadTemplates()
  }, [])
  const { view, template, prompt } = place.value
  if (view !== 'templates') return <SearchPane />
  return (
    <>
      {template === undefined ? <PromptsPane /> : null}
      {prompt === undefined ? <TemplatesPane /> : null}
    </>
  )
}
