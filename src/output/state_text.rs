//! Text of what backup, state and restore commands show above their findings.

use std::io::{self, Write};

use comfy_table::{ContentArrangement, Table};

use super::escape::visible;
use super::state_view::{BackupView, DiffView, GroupView, Parts, RestoreView, StateView};
use super::style::Styles;

/// How tables are laid out.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    pub headers: bool,
    pub wide: bool,
    pub styles: Styles,
}

/// Writes every part that there is. `object` heads what is no table.
pub fn render_parts(out: &mut dyn Write, object: &str, parts: &Parts, layout: Layout) -> io::Result<()> {
    if let Some(backups) = &parts.backups {
        render_backups(out, backups, layout)?;
    }
    let any = parts.state.is_some() || parts.diff.is_some() || parts.restore.is_some();
    if any {
        writeln!(out, "{}", layout.styles.bold(&visible(object)))?;
    }
    if let Some(restore) = &parts.restore {
        render_restore(out, restore, layout)?;
    }
    if let Some(state) = &parts.state {
        render_state(out, state, layout)?;
    }
    if let Some(diff) = &parts.diff {
        render_diff(out, diff, layout)?;
    }
    if let Some(saved) = &parts.saved {
        writeln!(out, "{} bytes of {} written to {}", saved.bytes, saved.content, visible(&saved.path))?;
    }
    Ok(())
}

fn line(out: &mut dyn Write, layout: Layout, label: &str, text: &str) -> io::Result<()> {
    let pad = " ".repeat(8usize.saturating_sub(label.len()));
    writeln!(out, "  {}{pad}  {}", layout.styles.dim(label), visible(text))
}

/// `1.2 MiB`, `340 KiB`, `12 B`.
pub fn size(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

fn render_backups(out: &mut dyn Write, backups: &[BackupView], layout: Layout) -> io::Result<()> {
    if backups.is_empty() {
        return Ok(());
    }
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.force_no_tty();
    if layout.headers {
        let mut header = vec!["SERIAL", "TAKEN", "CHUNKS", "SIZE", "RESOURCES", "RESTORE", "SOURCE-JOB"];
        if layout.wide {
            header.extend(["LINEAGE", "SET"]);
        }
        table.set_header(header);
    }
    for backup in backups {
        let text = |value: Option<String>| value.map_or("-".to_string(), |v| visible(&v).into_owned());
        let live = if backup.live { " (live)" } else { "" };
        let expected = backup.chunks_expected.map_or("?".to_string(), |n| n.to_string());
        let chunks =
            if backup.complete { backup.chunks.to_string() } else { format!("{} of {expected}", backup.chunks) };
        let restore = match (backup.restorable, backup.unreachable) {
            (true, _) => "yes",
            (_, true) => "no: a newer set has its serial",
            _ => "no: incomplete",
        };
        let mut row = vec![
            format!("{}{live}", text(backup.serial.map(|s| s.to_string()))),
            text(backup.age.clone()),
            chunks,
            backup.bytes.map_or("unknown".to_string(), size),
            text(backup.managed_resources.map(|r| r.to_string())),
            restore.to_string(),
            text(backup.source_job.clone()),
        ];
        if layout.wide {
            row.push(text(backup.lineage.clone()));
            row.push(visible(&backup.set).into_owned());
        }
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 3));
    }
    table.lines().try_for_each(|l| writeln!(out, "{}", l.trim_end()))
}

fn render_state(out: &mut dyn Write, state: &StateView, layout: Layout) -> io::Result<()> {
    let reason = state.reason.as_deref().unwrap_or("cannot be told now");
    line(out, layout, "reason", reason)?;
    if let Some(condition) = &state.condition {
        line(out, layout, "object", &format!("says {condition}"))?;
    }
    let mut content = state.content.to_string();
    if let Some(serial) = state.serial {
        content.push_str(&format!(", serial {serial}"));
    }
    if let Some(lineage) = &state.lineage {
        content.push_str(&format!(", lineage {lineage}"));
    }
    if let Some(version) = &state.runtime_version {
        content.push_str(&format!(", written by {version}"));
    }
    line(out, layout, "content", &content)?;
    if state.compressed_bytes > 0 {
        let text = format!(
            "{} compressed in {} of at most 32 Secrets of 1.0 MiB, {} decompressed",
            size(state.compressed_bytes),
            state.secrets.len(),
            size(state.decompressed_bytes)
        );
        line(out, layout, "size", &text)?;
    }
    let shown = if layout.wide { state.secrets.len() } else { 4 };
    for (index, secret) in state.secrets.iter().take(shown).enumerate() {
        line(out, layout, if index == 0 { "secrets" } else { "" }, secret)?;
    }
    if state.secrets.len() > shown {
        line(out, layout, "", &format!("and {} more (-o wide shows all)", state.secrets.len() - shown))?;
    }
    if let Some(managed) = state.managed_resources {
        let text = format!("{managed} managed resources, {} instances", state.instances);
        line(out, layout, "holds", &text)?;
    }
    let shown = if layout.wide { state.types.len() } else { 10 };
    for kind in state.types.iter().take(shown) {
        line(out, layout, "", &format!("{:>5}  {}", kind.instances, kind.kind))?;
    }
    if state.types.len() > shown {
        line(out, layout, "", &format!("and {} more types (-o wide shows all)", state.types.len() - shown))?;
    }
    Ok(())
}

fn render_diff(out: &mut dyn Write, diff: &DiffView, layout: Layout) -> io::Result<()> {
    line(out, layout, "compared", &format!("{} in place of {}", diff.to, diff.from))?;
    let counts = format!(
        "{} forgotten, {} brought back, {} with another ID, {} unchanged",
        diff.forgotten_count, diff.returning_count, diff.other_id_count, diff.same_count
    );
    line(out, layout, "counts", &counts)?;
    for (label, head, groups) in [
        ("forget", "Terraform would know no more (they keep running):", &diff.forgotten),
        ("return", "Terraform would know again:", &diff.returning),
        ("other ID", "the backup knows under another provider ID:", &diff.other_id),
    ] {
        if !groups.is_empty() {
            line(out, layout, label, head)?;
            render_groups(out, groups, if layout.wide { usize::MAX } else { diff.text_limit }, layout)?;
        }
    }
    for (index, count) in diff.instance_counts.iter().enumerate() {
        let label = if index == 0 { "number" } else { "" };
        let text = format!("{}: {} instances, {} in the backup", count.resource, count.before, count.after);
        line(out, layout, label, &text)?;
    }
    Ok(())
}

fn render_groups(out: &mut dyn Write, groups: &[GroupView], limit: usize, layout: Layout) -> io::Result<()> {
    let mut left = limit;
    let mut hidden = 0;
    for group in groups {
        line(out, layout, "", &format!("{} ({})", group.kind, group.addresses.len()))?;
        for address in &group.addresses {
            if left == 0 {
                hidden += 1;
                continue;
            }
            left -= 1;
            line(out, layout, "", &format!("  {address}"))?;
        }
    }
    if hidden > 0 {
        line(out, layout, "", &format!("and {hidden} more (-o wide shows all)"))?;
    }
    Ok(())
}

fn render_restore(out: &mut dyn Write, restore: &RestoreView, layout: Layout) -> io::Result<()> {
    if let Some(serial) = restore.serial {
        let taken = restore.taken_at.as_ref().zip(restore.age.as_ref());
        let taken = taken.map(|(at, age)| format!(", taken {at} ({age})")).unwrap_or_default();
        line(out, layout, "restore", &format!("serial {serial}{taken}"))?;
    }
    if let Some(set) = &restore.set {
        line(out, layout, "from", &format!("Secret/{set}"))?;
    }
    if let Some(progress) = &restore.progress {
        line(out, layout, "now", progress)?;
    }
    if let Some(patch) = &restore.patch {
        line(out, layout, "patch", &patch.to_string())?;
    }
    if let Some(says) = &restore.server_says {
        line(out, layout, "server", says)?;
    }
    match (restore.refused, restore.dry_run) {
        (Some(true), _) => line(out, layout, "verdict", "refused; nothing was changed"),
        (Some(false), Some(_)) => line(out, layout, "verdict", "not refused; a dry run, nothing was changed"),
        _ => Ok(()),
    }
}
