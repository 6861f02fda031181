import { textProperty } from '../runtime/property.ts'
import type { CareMessages } from './messages/care-messages.ts'

/** What is the matter with a file, in words where the system's code is one that people meet, with the code behind it. */
export function fileReason(cause: unknown, { fileReasons }: CareMessages): string {
  const code = textProperty(cause, 'code') ?? 'unknown'
  return Object.hasOwn(fileReasons, code)
    ? `${fileReasons[code as keyof typeof fileReasons]} (${code})`
    : code
}
