#!/bin/bash
# Does a task in each index of a job array:
#   sbatch --array=0-999%50 task.sh tasks.jsonl results
# Exit codes 4, 6 requeue the index, at most 2 times; all others are final. Slurm itself requeues it when
# a node is lost.
# Do not set RequeueExit for these codes in slurm.conf, too: it has no limit.
#SBATCH --job-name=code-commit
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:TERM@60
code-commit fleet task "$1" "$SLURM_ARRAY_TASK_ID" --out "$2" &
task=$!
trap 'kill -TERM "$task"' TERM
wait "$task"
code=$?
# A signal ends the first wait, not the task.
[ "$code" -le 128 ] || { wait "$task"; code=$?; }
case $code in
  4|6)
    if [ "${SLURM_RESTART_COUNT:-0}" -lt 2 ]; then
      # The requeue ends this script.
      scontrol requeue "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID" && sleep 60
    fi
    ;;
esac
exit "$code"
